#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "runtime/engine/forward.h"
#include "runtime/kernels/instruction_sets.h"
#include "tests/support/cases.h"
#include "tests/support/golden.h"
#include "tests/support/golden_model.h"
#include "tests/support/tables.h"
#include "tests/support/text_alone.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

constexpr std::size_t texts = 5;

// Of a batch of texts of up to `longest` tokens.
std::size_t max_tokens(std::size_t longest) {
  return longest * texts / 3;
}

std::vector<TextAlone> random_texts(const Model& model, const kernels::Table& table, std::size_t longest,
                                    KvType kv_type, std::mt19937& random) {
  Forward forward(model, table, 1, longest, longest);
  const std::size_t vocab = model.config.vocab_size;
  std::vector<TextAlone> all;
  for (std::size_t i = 0; i < texts; ++i) {
    TextAlone text{std::vector<std::int32_t>(longest), std::vector<float>(longest * vocab),
                   Context(model.config, longest, kv_type)};
    for (std::int32_t& token : text.tokens) token = static_cast<std::int32_t>(random() % vocab);
    forward.run(text.context, text.tokens, {text.logits.data(), longest, vocab});
    text.context.rewind(0);
    all.push_back(std::move(text));
  }
  return all;
}

// Moves random texts: forward by a random number of tokens, most often one, or back to an earlier position.
std::vector<Piece> random_pieces(std::vector<TextAlone>& all, std::size_t longest, std::mt19937& random) {
  std::vector<Piece> pieces;
  std::shuffle(all.begin(), all.end(), random);
  std::size_t room = max_tokens(longest);
  const bool decode = random() % 2 == 0;
  for (TextAlone& text : all) {
    if (random() % 4 == 0 || room == 0) continue;
    if (text.context.size() == longest || random() % 5 == 0) text.context.rewind(random() % (text.context.size() + 1));
    if (text.context.size() == longest) continue;
    const std::size_t most = std::min(room, longest - text.context.size());
    const std::size_t count = decode ? 1 : 1 + random() % most;
    pieces.push_back(
        {&text.context, std::span(text.tokens).subspan(text.context.size(), count), random() % (count + 1)});
    room -= count;
  }
  return pieces;
}

void expect_logits_of_single_texts(const Model& model, const kernels::Table& table, std::size_t threads, KvType kv_type,
                                   std::uint32_t seed, std::size_t longest = 24) {
  std::mt19937 random(seed);
  const std::size_t vocab = model.config.vocab_size;
  Forward forward(model, table, threads, max_tokens(longest), longest);
  std::vector<TextAlone> all = random_texts(model, table, longest, kv_type, random);
  for (unsigned step = 0; step < cases(12); ++step) {
    const std::vector<Piece> pieces = random_pieces(all, longest, random);
    if (pieces.empty()) continue;
    const std::vector<float> expected = logits_alone(all, pieces, vocab);
    std::vector<float> logits(expected.size());
    forward.run(pieces, {logits.data(), logits.size() / vocab, vocab});
    ASSERT_EQ(logits, expected) << table.name << ", " << threads << " threads, " << name_of(kv_type) << ", step "
                                << step;
  }
}

class RaggedBatch : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Forward, RaggedBatch, testing::ValuesIn(golden_names()), test_name);

TEST_P(RaggedBatch, HasTheBitsOfEachTextAlone) {
  const GoldenCase golden = load_golden(GetParam());
  const Model model = load_golden_model(golden, std::nullopt);
  std::uint32_t seed = 0;
  for (const kernels::Table* table : tables()) {
    for (const std::size_t threads : {1u, 2u, 5u}) {
      for (const KvType kv_type : {KvType::f32, KvType::f16, KvType::q8_0}) {
        expect_logits_of_single_texts(model, *table, threads, kv_type, ++seed);
      }
    }
  }
}

// Of so many tokens, each worker computes its own alone.
TEST_P(RaggedBatch, HasTheBitsOfEachTextAloneInLargeBatches) {
  const GoldenCase golden = load_golden(GetParam());
  std::uint32_t seed = 300;
  for (const WeightType type : std::initializer_list<WeightType>{std::nullopt, DType::q8_0, DType::q8_r}) {
    const Model model = load_golden_model(golden, type);
    for (const std::size_t threads : {2u, 3u}) {
      for (const KvType kv_type : {KvType::f32, KvType::q8_0}) {
        expect_logits_of_single_texts(model, kernels::choose(), threads, kv_type, ++seed, 240);
      }
    }
  }
}

TEST(RaggedBatches, HasTheBitsOfEachTextAloneInEveryType) {
  for (const char* const name : {"v2-dense", "v2-moe", "v3-moe"}) {
    const GoldenCase golden = load_golden(name);
    std::uint32_t seed = 100;
    for (const DType type :
         {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::iq4_nl, DType::q4_1, DType::q5_0}) {
      const Model model = load_golden_model(golden, type);
      for (const kernels::Table* table : tables()) {
        for (const std::size_t threads : {1u, 3u}) {
          expect_logits_of_single_texts(model, *table, threads, KvType::f16, ++seed);
        }
      }
    }
  }
}

TEST(RaggedBatches, HasTheBitsOfEachTextAloneWithProductsOfBf16) {
  std::uint32_t seed = 200;
  for (const kernels::Table& table : bf16_tables()) {
    for (const char* const name : {"v2-dense", "v2-moe", "v3-moe", "v3-odd"}) {
      const Model model = load_golden_model(load_golden(name), DType::bf16, Compute::bf16);
      for (const std::size_t threads : {1u, 3u}) {
        for (int repetition = 0; repetition < 3; ++repetition) {
          expect_logits_of_single_texts(model, table, threads, KvType::f32, ++seed);
        }
      }
    }
  }
}

TEST(RaggedBatches, InvalidTokensLeaveContextsUnchanged) {
  const Model model = load_golden_model(load_golden("v3-dense"), std::nullopt);
  Forward forward(model, kernels::choose(), 1, 8, 8);
  Context first(model.config, 8), second(model.config, 8);
  const std::vector<std::int32_t> good{1, 2, 3}, bad{4, -1};
  EXPECT_THROW(forward.run(std::vector<Piece>{{&first, good}, {&second, bad}}, {}), Error);
  EXPECT_EQ(first.size(), 0u);
  forward.run(std::vector<Piece>{{&first, good}, {&second, std::span(bad).first(1)}}, {});
  EXPECT_TRUE(std::ranges::equal(first.tokens(), good));
  EXPECT_EQ(second.size(), 1u);
}

}  // namespace
}  // namespace minimind
