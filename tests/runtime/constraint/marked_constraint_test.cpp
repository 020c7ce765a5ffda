#include "runtime/constraint/grammar_constraint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/grammar/gbnf.h"
#include "runtime/tokenizer/files.h"
#include "runtime/tokenizer/tokenizer.h"

namespace minimind {
namespace {

// Texts "{a}" or "{b}" between "<tool_call>\n" and "\n</tool_call>".
class MarkedConstraintTest : public testing::Test {
 protected:
  MarkedConstraint constraint(bool anything_outside, std::size_t tokens_left = 1000) {
    const GrammarMarks marks{
        .open = open, .close = close, .anything_outside = anything_outside, .starts_open = !anything_outside};
    return {grammar, make_token_trie(tokenizer), tokenizer, tokenizer.vocab_size(), std::vector{end}, tokens_left,
            marks};
  }
  static void take(MarkedConstraint& constraint, const std::vector<std::int32_t>& tokens,
                   std::size_t tokens_left = 1000) {
    for (const std::int32_t token : tokens) {
      const auto allowed = constraint.allowed();
      ASSERT_TRUE(allowed.empty() || allowed[static_cast<std::size_t>(token)]) << token;
      constraint.accept(token, tokens_left);
    }
  }
  static std::vector<std::int32_t> allowed(MarkedConstraint& constraint) {
    std::vector<std::int32_t> tokens;
    for (std::size_t i = 0; i < constraint.allowed().size(); ++i) {
      if (constraint.allowed()[i]) tokens.push_back(static_cast<std::int32_t>(i));
    }
    return tokens;
  }

  const Tokenizer tokenizer = load_tokenizer(MINIMIND_SOURCE_DIR "/weights/demo");
  const std::shared_ptr<const Grammar> grammar =
      std::make_shared<const Grammar>(parse_grammar("root ::= \"{\" [ab] \"}\"", "g.gbnf"));
  const std::vector<std::int32_t> open = tokenizer.encode_with_special("<tool_call>\n");
  const std::vector<std::int32_t> close = tokenizer.encode_with_special("\n</tool_call>");
  const std::vector<std::int32_t> text = tokenizer.encode("{a}");
  const std::int32_t end = *tokenizer.eos_id();
};

TEST_F(MarkedConstraintTest, OpensAnotherTextOrEnds) {
  MarkedConstraint its = constraint(false);
  take(its, text);
  EXPECT_FALSE(its.finished());
  EXPECT_EQ(allowed(its), std::vector{close.front()});
  EXPECT_FALSE(its.conforms("{a}"));
  take(its, close);
  std::vector<std::int32_t> next{end, open.front()};
  std::ranges::sort(next);
  EXPECT_EQ(allowed(its), next);
  EXPECT_TRUE(its.conforms(""));
  take(its, open);
  take(its, text);
  take(its, close);
  EXPECT_EQ(allowed(its), next);
}

TEST_F(MarkedConstraintTest, MarksMayBeOneTokenAndEndTokensOutsideTheVocabulary) {
  const std::vector<std::int32_t> mark = tokenizer.encode_with_special("<tool_call>");
  ASSERT_EQ(mark.size(), 1u);
  const auto beyond = static_cast<std::int32_t>(tokenizer.vocab_size());
  MarkedConstraint its(grammar, make_token_trie(tokenizer), tokenizer, tokenizer.vocab_size(), std::vector{beyond},
                       1000, GrammarMarks{.open = mark, .close = mark, .starts_open = true});
  take(its, text);
  EXPECT_EQ(allowed(its), mark);
  take(its, mark);
  EXPECT_TRUE(its.conforms(""));
  EXPECT_TRUE(its.finished()) << "no end token is left";
  EXPECT_EQ(allowed(its), mark);
  take(its, mark);
  take(its, text);
}

TEST_F(MarkedConstraintTest, OpensNoTextThatCannotEnd) {
  MarkedConstraint its = constraint(false);
  take(its, text);
  take(its, close, open.size() + text.size() - 1);
  EXPECT_TRUE(its.finished());
}

TEST_F(MarkedConstraintTest, LeavesTheRestOfTheTextFree) {
  MarkedConstraint its = constraint(true);
  EXPECT_TRUE(its.allowed().empty());
  take(its, tokenizer.encode("anything {"));
  EXPECT_TRUE(its.allowed().empty());
  take(its, {open.front()});
  EXPECT_EQ(allowed(its), std::vector{open[1]});
  take(its, {open[1]});
  EXPECT_FALSE(its.allowed()[static_cast<std::size_t>(end)]);
  take(its, text);
  take(its, close);
  EXPECT_TRUE(its.allowed().empty());
  EXPECT_FALSE(its.finished());
}

TEST_F(MarkedConstraintTest, IsTheGrammarAloneWithoutMarks) {
  MarkedConstraint its(grammar, make_token_trie(tokenizer), tokenizer, tokenizer.vocab_size(), std::vector{end}, 1000,
                       std::nullopt);
  take(its, text);
  EXPECT_TRUE(its.finished());
  EXPECT_TRUE(its.conforms("{a}"));
  EXPECT_FALSE(its.conforms("{a"));
}

}  // namespace
}  // namespace minimind
