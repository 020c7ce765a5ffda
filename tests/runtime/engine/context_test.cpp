#include "runtime/engine/context.h"
#include "runtime/kernels/instruction_sets.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/engine/forward.h"
#include "runtime/engine/load_model.h"
#include "tests/support/golden.h"
#include "weights/base/error.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {
namespace {

using Tokens = std::vector<std::int32_t>;

class ContextTest : public testing::Test {
 protected:
  ContextTest()
      : golden_(load_golden("v3-dense")),
        model_(load_model(open_checkpoint(golden_.model_path, {}), std::nullopt, 1)),
        forward_(model_, kernels::choose(), 1, 16, 16),
        context_(model_.config, 16) {}

  void run(const Tokens& tokens) { forward_.run(context_, tokens, {}); }

  std::vector<float> logits_after(Context& context, const Tokens& tokens) {
    std::vector<float> logits(golden_.vocab);
    forward_.run(context, tokens, {logits.data(), 1, logits.size()});
    return logits;
  }

  Tokens tokens() const { return {context_.tokens().begin(), context_.tokens().end()}; }

  GoldenCase golden_;
  Model model_;
  Forward forward_;
  Context context_;
};

TEST_F(ContextTest, HasTheTokensThatWereRunInOrder) {
  EXPECT_EQ(context_.capacity(), 16u);
  EXPECT_EQ(context_.size(), 0u);
  run({1, 2, 3});
  run({4});
  EXPECT_EQ(tokens(), (Tokens{1, 2, 3, 4}));
}

TEST_F(ContextTest, InvalidTokensLeaveTheContextUnchanged) {
  run({1, 2});
  for (const std::int32_t token : {-1, static_cast<std::int32_t>(model_.config.vocab_size)}) {
    EXPECT_THROW(run({3, token}), Error) << token;
    EXPECT_EQ(tokens(), (Tokens{1, 2}));
  }
}

TEST_F(ContextTest, RewindsTokensAndCacheTogether) {
  run({1, 2, 3, 4});
  context_.rewind(2);
  EXPECT_EQ(tokens(), (Tokens{1, 2}));
  Context fresh(model_.config, 16);
  EXPECT_EQ(logits_after(context_, {7, 8}), logits_after(fresh, {1, 2, 7, 8}));
}

TEST_F(ContextTest, AContextThatStartsWithAnotherOneSharesItsWholeParts) {
  Forward forward(model_, kernels::choose(), 1, 120, 120);
  Tokens text(110);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::int32_t>(i * 7 % golden_.vocab);
  for (const KvType type : {KvType::f32, KvType::f16, KvType::q8_0}) {
    const auto next_logits = [&](Context& context) {
      std::vector<float> logits(golden_.vocab);
      forward.run(context, std::span(text).subspan(context.size()), {logits.data(), 1, logits.size()});
      return logits;
    };
    Context first(model_.config, 120, type, {100});
    EXPECT_TRUE(first.cache().is_own(0));
    const std::vector<float> expected = next_logits(first);
    Context second(first, 105, 120);
    EXPECT_EQ(second.size(), 105u);
    EXPECT_FALSE(second.cache().is_own(95)) << "positions 0 to 95 are shared";
    EXPECT_TRUE(second.cache().is_own(96));
    EXPECT_EQ(next_logits(second), expected);

    // Neither disturbs the other when it writes what they shared.
    second.rewind(70);
    EXPECT_TRUE(second.cache().is_own(0));
    forward.run(second, Tokens(50, 1), {});
    first.rewind(108);
    EXPECT_EQ(next_logits(first), expected);
    Context third(first, 105, 120);
    first.rewind(40);
    forward.run(first, Tokens(80, 1), {});
    EXPECT_EQ(next_logits(third), expected);
    Context fourth(second, 70, 120);
    EXPECT_EQ(next_logits(fourth), expected) << "70 positions stayed when the second was rewound";
  }
}

TEST_F(ContextTest, FindsTheCommonPrefixWithAPromptShortOfItsLastToken) {
  struct Case {
    Tokens prompt;
    std::size_t common;
  };
  run({1, 2, 3, 4});
  for (const Case& c : {Case{{1, 2, 3, 4, 5, 6}, 4},
                        {{1, 2, 9, 4, 5}, 2},
                        {{9, 2, 3}, 0},
                        {{1, 2, 3, 4}, 3},
                        {{1, 2}, 1},
                        {{1}, 0},
                        {{}, 0}}) {
    EXPECT_EQ(context_.common_prefix(c.prompt), c.common);
  }
}

}  // namespace
}  // namespace minimind
