#include "runtime/engine/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/kernels/instruction_sets.h"
#include "runtime/kernels/kernels.h"
#include "tests/support/epsilon.h"
#include "tests/support/tables.h"
#include "weights/base/cancel.h"

namespace minimind {
namespace {

// q, keys and values of a batch after `before` positions.
struct TestAttention {
  Config config;
  std::size_t before, tokens, queries;
  std::vector<float> q, k, v;  // [queries, H * head_dim], [before + tokens, K * head_dim] twice
};

TestAttention random_attention(std::size_t head_dim, std::size_t heads, std::size_t kv_heads, std::size_t before,
                               std::size_t tokens, std::size_t queries) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  TestAttention test{{}, before, tokens, queries, {}, {}, {}};
  test.config.head_dim = head_dim;
  test.config.num_attention_heads = heads;
  test.config.num_key_value_heads = kv_heads;
  test.config.num_hidden_layers = 1;
  test.q.resize(queries * heads * head_dim);
  for (auto* of_positions : {&test.k, &test.v}) of_positions->resize((before + tokens) * kv_heads * head_dim);
  for (auto* numbers : {&test.q, &test.k, &test.v}) {
    // Values that 8 bits represent exactly: up to 126 steps of 1/32, and one of 127 steps in each block.
    for (std::size_t i = 0; i < numbers->size(); ++i) {
      const float steps = std::clamp(std::nearbyint(32 * normal(random)), -126.0f, 126.0f);
      (*numbers)[i] = (i % head_dim % 32 == 0 ? std::copysign(127.0f, steps) : steps) / 32;
    }
  }
  return test;
}

Attention without_norms() {
  const WeightMatrix nothing(*find_matrix_format(DType::f32), 0, 0, nullptr);
  return {nothing, nothing, nothing, nothing, {}, {}};
}

// `forgotten`: positions after those of the batch, with earlier values that must not be used.
std::vector<float> attended(const TestAttention& test, KvType type, std::size_t workers,
                            const kernels::Table& table = kernels::choose(), std::size_t forgotten = 0) {
  const Config& config = test.config;
  const std::size_t head_dim = config.head_dim, kv_cols = config.num_key_value_heads * head_dim,
                    positions = test.before + test.tokens;
  Context context(config, positions + forgotten, type);
  const std::vector<float> unseen(head_dim, NAN);
  for (std::size_t kv_head = 0; kv_head < config.num_key_value_heads; ++kv_head) {
    for (std::size_t position = 0; forgotten > 0 && position < context.capacity(); ++position) {
      context.cache().put(table, 0, kv_head, position, unseen.data(), unseen.data());
    }
    for (std::size_t position = 0; position < positions; ++position) {
      const std::size_t at = position * kv_cols + kv_head * head_dim;
      context.cache().put(table, 0, kv_head, position, &test.k[at], &test.v[at]);
    }
  }
  const std::vector<std::int32_t> tokens(positions);
  context.append(std::span(tokens).first(test.before));
  const Piece piece{&context, std::span(tokens).first(test.tokens), test.queries};
  Batch batch(test.tokens, attention_tile_rows(config) / (config.num_attention_heads / config.num_key_value_heads));
  batch.assign(std::span(&piece, 1));
  const std::size_t first_query = batch.requested().begin;
  const Attention no_norms = without_norms();
  const Model model{.config = config,
                    .rope = {},
                    .embed_tokens = no_norms.q_proj,
                    .layers = {},
                    .norm = {},
                    .lm_head = {},
                    .type_fallbacks = {}};
  const Scratch scratch(model, test.tokens, positions, workers);
  std::copy(test.q.begin(), test.q.end(), scratch.q.row(first_query));
  std::fill(scratch.attended.row(0), scratch.attended.row(test.tokens), NAN);
  const kernels::ActivationBlock stale{NAN, NAN, 0, 0, {}};
  const std::size_t rows = attention_tile_rows(config);
  for (const AttentionScratch& own : scratch.attention) {
    std::fill(own.scores.row(0), own.scores.row(rows), NAN);
    std::fill(own.q_blocks.row(0), own.q_blocks.row(rows), stale);
    std::fill(own.score_blocks.row(0), own.score_blocks.row(rows), stale);
  }
  std::atomic<bool> cancelled = false;
  const AttentionStep step{table, config, no_norms, 0, batch, scratch, cancelled};
  run_team(workers, [&](Worker& worker) { attend(step, first_query, worker); });
  return {scratch.attended.row(first_query), scratch.attended.row(test.tokens)};
}

// One head of one query against the definition.
void expect_attention(const TestAttention& test, KvType type, const std::vector<float>& out, std::size_t query,
                      std::size_t head) {
  const std::size_t head_dim = test.config.head_dim, kv_cols = test.config.num_key_value_heads * head_dim;
  const std::size_t kv_head = head / (test.config.num_attention_heads / test.config.num_key_value_heads);
  const std::size_t seen = test.before + test.tokens - test.queries + query + 1;
  const std::size_t at = query * test.config.num_attention_heads * head_dim + head * head_dim;
  const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
  std::vector<double> weight(seen);
  double sum = 0, score_error = 0, largest = 0;
  for (std::size_t j = 0; j < seen; ++j) {
    double score = 0, magnitude = 0;
    for (std::size_t i = 0; i < head_dim; ++i) {
      const double term = static_cast<double>(test.q[at + i]) * test.k[j * kv_cols + kv_head * head_dim + i];
      score += term;
      magnitude += std::fabs(term);
      largest = std::max(largest, std::fabs(static_cast<double>(test.v[j * kv_cols + kv_head * head_dim + i])));
    }
    sum += weight[j] = std::exp(score * scale);
    score_error = std::max(score_error, static_cast<double>(head_dim + 4) * epsilon * magnitude * scale);
  }
  // A weight is off by a factor of exp(2 score_error) and the roundings of softmax and of the weighted sum.
  double bound = (2 * score_error + static_cast<double>(2 * seen + 40) * epsilon) * largest;
  // In q8_0 the weights, times the values' scales, also lose half a step of their block. A value is at most 127 times
  // its scale, and all scales are equal.
  if (type == KvType::q8_0) {
    for (std::size_t first = 0; first < seen; first += 32) {
      const std::size_t last = std::min(first + 32, seen);
      const double most = *std::max_element(weight.begin() + static_cast<std::ptrdiff_t>(first),
                                            weight.begin() + static_cast<std::ptrdiff_t>(last));
      bound += static_cast<double>(last - first) * most / sum / 254 * largest;
    }
  }
  for (std::size_t i = 0; i < head_dim; ++i) {
    double exact = 0;
    for (std::size_t j = 0; j < seen; ++j) {
      exact += weight[j] / sum * test.v[j * kv_cols + kv_head * head_dim + i];
    }
    ASSERT_NEAR(out[at + i], exact, bound) << "query " << query << ", head " << head << ", head_dim " << head_dim;
  }
}

TEST(Attend, EqualsTheDefinitionInDoublePrecision) {
  for (const std::size_t head_dim : {2u, 20u, 48u, 80u, 96u}) {
    for (const auto& [heads, kv_heads] : {std::pair{4u, 4u}, {8u, 2u}, {6u, 2u}, {15u, 1u}}) {
      for (const auto& [before, tokens, queries] :
           {std::tuple{0u, 1u, 1u}, {130u, 1u, 1u}, {0u, 40u, 40u}, {17u, 30u, 30u}, {5u, 30u, 2u}}) {
        const TestAttention test = random_attention(head_dim, heads, kv_heads, before, tokens, queries);
        for (const KvType type : {KvType::f32, KvType::q8_0}) {
          const std::vector<float> out = attended(test, type, 1);
          for (std::size_t query = 0; query < queries; ++query) {
            for (std::size_t head = 0; head < heads; ++head) expect_attention(test, type, out, query, head);
          }
        }
      }
    }
  }
}

TEST(Attend, GivesTheSameBitsWithAnyWorkersAndF16Keys) {
  for (const std::size_t queries : {1u, 30u}) {
    const TestAttention test = random_attention(48, 8, 2, 17, 30, queries);
    const std::vector<float> alone = attended(test, KvType::f32, 1);
    EXPECT_EQ(attended(test, KvType::f16, 1), alone);
    const std::vector<float> by_q8_0 = attended(test, KvType::q8_0, 1);
    for (const std::size_t workers : {2u, 3u, 5u, 16u}) {
      EXPECT_EQ(attended(test, KvType::f32, workers), alone);
      EXPECT_EQ(attended(test, KvType::q8_0, workers), by_q8_0);
    }
  }
}

TEST(Attend, EndsBeforeTheNextTileOnceTheWorkIsCancelled) {
  const TestAttention test = random_attention(48, 8, 2, 17, 30, 30);
  const std::atomic<bool> flag = true;
  const Cancellation cancellation(flag);
  for (const float value : attended(test, KvType::f32, 1)) ASSERT_TRUE(std::isnan(value)) << "was written";
}

TEST(Attend, IgnoresForgottenPositions) {
  const TestAttention test = random_attention(48, 8, 2, 17, 30, 30);
  for (const KvType type : {KvType::f32, KvType::f16, KvType::q8_0}) {
    for (const kernels::Table* table : tables()) {
      EXPECT_EQ(attended(test, type, 1, *table, 40), attended(test, type, 1, *table)) << name_of(type);
    }
  }
}

TEST(Attend, HidesNonFiniteValuesFromEarlierQueries) {
  constexpr std::size_t head_dim = 48, queries = 30, before = 17, bad_position = before + 11;
  constexpr std::size_t hidden = (bad_position - before) * 2 * head_dim;  // elements of the queries before it
  TestAttention test = random_attention(head_dim, 2, 1, before, queries, queries);
  for (const KvType type : {KvType::f32, KvType::f16}) {
    for (const kernels::Table* table : tables()) {
      const std::vector<float> finite = attended(test, type, 1, *table);
      for (const float bad : {NAN, INFINITY, -INFINITY}) {
        TestAttention with_bad = test;
        with_bad.v[bad_position * head_dim + 40] = bad;
        const std::vector<float> out = attended(with_bad, type, 1, *table);
        EXPECT_TRUE(std::equal(out.begin(), out.begin() + hidden, finite.begin())) << name_of(type) << table->name;
        EXPECT_FALSE(std::isfinite(out[hidden + 40])) << name_of(type) << table->name;
      }
    }
  }
}

TEST(Attend, Q8_0ShowsNonFiniteValuesToLaterQueries) {
  constexpr std::size_t head_dim = 48, queries = 30, bad_position = 17 + 11;
  for (const float bad : {NAN, INFINITY, -INFINITY, 1e7f}) {
    for (const bool in_key : {true, false}) {
      TestAttention test = random_attention(head_dim, 2, 1, 17, 30, queries);
      (in_key ? test.k : test.v)[bad_position * head_dim + 40] = bad;
      for (const kernels::Table* table : tables()) {
        const std::vector<float> out = attended(test, KvType::q8_0, 1, *table);
        for (std::size_t at = 0; at < out.size(); ++at) {
          const bool seen = 17 + at / (2 * head_dim) >= bad_position, in_block = in_key || at % head_dim >= 32;
          ASSERT_EQ(std::isnan(out[at]), seen && in_block) << table->name << ", element " << at;
        }
      }
    }
  }
}

}  // namespace
}  // namespace minimind
