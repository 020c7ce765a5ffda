#include "runtime/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>

#include "runtime/kernels/kernels.h"

namespace minimind {
namespace {

constexpr double epsilon = std::numeric_limits<float>::epsilon();

using Rows = std::vector<std::vector<double>>;

// A random float matrix, as the product knows it and packed for the kernels.
struct TestMatrix {
  Rows values;
  WeightMatrix packed;
};

TestMatrix random_matrix(std::size_t rows, std::size_t cols, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(cols)));
  auto bytes = std::make_shared<std::vector<std::byte>>(rows * cols * sizeof(float));
  Rows values(rows, std::vector<double>(cols));
  for (std::size_t i = 0; i < rows * cols; ++i) {
    const float value = normal(random);
    values[i / cols][i % cols] = value;
    std::memcpy(bytes->data() + i * sizeof value, &value, sizeof value);
  }
  const StoredTensor stored{
      .dtype = DType::f32, .shape = {rows, cols}, .data = *bytes, .file = "test", .mapping = nullptr, .copy = bytes};
  return {std::move(values), pack(stored, WeightType::as_stored, 1)};
}

std::vector<double> times(const Rows& matrix, const std::vector<double>& x) {
  std::vector<double> y;
  for (const auto& row : matrix) y.push_back(std::inner_product(row.begin(), row.end(), x.begin(), 0.0));
  return y;
}

struct TestNetwork {
  Rows gate, up, down;
};

// down(silu(gate x) * up x), in double precision.
std::vector<double> run(const TestNetwork& network, const std::vector<double>& x) {
  std::vector<double> hidden = times(network.gate, x);
  const std::vector<double> up = times(network.up, x);
  for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] = hidden[i] / (1 + std::exp(-hidden[i])) * up[i];
  return times(network.down, hidden);
}

struct Sizes {
  std::size_t hidden, width, experts, shared, per_token, tokens;
  bool normalize;
};

struct TestMixture {
  Rows router;
  std::vector<TestNetwork> networks;
  MixtureOfExperts moe;
};

TestMixture random_mixture(const Sizes& sizes, std::mt19937& random) {
  TestMatrix router = random_matrix(sizes.experts, sizes.hidden, random);
  TestMixture mixture{std::move(router.values),
                      {},
                      {.router = std::get<PackedMatrix<float>>(std::move(router.packed)),
                       .experts = {},
                       .routed_experts = sizes.experts,
                       .experts_per_token = sizes.per_token,
                       .normalize = sizes.normalize}};
  for (std::size_t e = 0; e < sizes.experts + sizes.shared; ++e) {
    TestMatrix gate = random_matrix(sizes.width, sizes.hidden, random);
    TestMatrix up = random_matrix(sizes.width, sizes.hidden, random);
    TestMatrix down = random_matrix(sizes.hidden, sizes.width, random);
    mixture.networks.push_back({std::move(gate.values), std::move(up.values), std::move(down.values)});
    mixture.moe.experts.push_back({.gate_proj = std::move(gate.packed),
                                   .up_proj = std::move(up.packed),
                                   .down_proj = std::move(down.packed),
                                   .gate_bias = {},
                                   .up_bias = {},
                                   .down_bias = {}});
  }
  return mixture;
}

// The definition, one token at a time.
std::vector<double> mixture_of(const TestMixture& mixture, const std::vector<double>& x) {
  std::vector<double> scores = times(mixture.router, x);
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score);
  for (double& score : scores) score /= sum;
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  order.resize(mixture.moe.experts_per_token);
  double chosen = 0;
  for (const std::size_t e : order) chosen += scores[e];
  std::vector<double> out(x.size());
  const auto add = [&](std::size_t e, double weight) {
    const std::vector<double> y = run(mixture.networks[e], x);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += weight * y[i];
  };
  for (const std::size_t e : order) add(e, mixture.moe.normalize ? scores[e] / chosen : scores[e]);
  for (std::size_t e = mixture.moe.routed_experts; e < mixture.networks.size(); ++e) add(e, 1);
  return out;
}

class Mixture : public testing::TestWithParam<Sizes> {};

INSTANTIATE_TEST_SUITE_P(Ops, Mixture,
                         testing::Values(Sizes{32, 24, 4, 0, 1, 9, true}, Sizes{32, 24, 4, 0, 1, 9, false},
                                         Sizes{48, 75, 5, 2, 3, 20, false}, Sizes{48, 75, 5, 2, 3, 20, true},
                                         Sizes{16, 8, 3, 1, 3, 1, true}));

// The steps of Forward's mixture, for one worker, against the definition.
TEST_P(Mixture, OfChosenAndSharedExpertsEqualsTheLoopInDoublePrecision) {
  const Sizes sizes = GetParam();
  std::mt19937 random(5);
  TestMixture mixture = random_mixture(sizes, random);
  std::vector<float> x(sizes.tokens * sizes.hidden),
      gathered(sizes.tokens * (sizes.per_token + sizes.shared) * sizes.hidden);
  std::normal_distribution<float> normal;
  for (float& value : x) value = normal(random);

  Routing routing;
  const std::size_t per_token = sizes.per_token + sizes.shared, slots = sizes.tokens * per_token;
  routing.expert.resize(slots);
  routing.weight.resize(slots);
  routing.slot.resize(slots);
  routing.token_of_slot.resize(slots);
  routing.first_slot.resize(mixture.moe.experts.size() + 1);
  std::vector<float> scores(sizes.tokens * sizes.experts), gate(slots * sizes.width), up(slots * sizes.width);
  std::vector<float> out(slots * sizes.hidden);
  const FeedForwardBatch batch{.gate = {gate.data(), slots, sizes.width},
                               .up = {up.data(), slots, sizes.width},
                               .out = {out.data(), slots, sizes.hidden}};
  const Matrix<const float> input{x.data(), sizes.tokens, sizes.hidden};
  run_team(1, [&](Worker& worker) {
    const auto& table = kernels::choose();
    route(table, mixture.moe, input, {0, sizes.tokens}, {scores.data(), sizes.tokens, sizes.experts}, routing);
    assign_slots(mixture.moe, sizes.tokens, routing);
    for (std::size_t slot = 0; slot < slots; ++slot) {
      std::copy_n(input.row(routing.token_of_slot[slot]), sizes.hidden, &gathered[slot * sizes.hidden]);
    }
    for (std::size_t e = 0; e < mixture.moe.experts.size(); ++e) {
      const std::size_t first = routing.first_slot[e], count = routing.first_slot[e + 1] - first;
      if (count == 0) continue;
      const FeedForward& expert = mixture.moe.experts[e];
      const Activations normed{.exact = {&gathered[first * sizes.hidden], count, sizes.hidden}, .quantized = {}};
      feed_forward_in(table, HiddenAct::silu, expert, normed, first, batch, worker);
      const Activations hidden{.exact = as_const(hidden_of(expert, first, count, batch)), .quantized = {}};
      feed_forward_out(table, expert, hidden, first, batch, worker);
    }
  });

  for (std::size_t t = 0; t < sizes.tokens; ++t) {
    const std::vector<double> exact = mixture_of(mixture, {input.row(t), input.row(t) + sizes.hidden});
    for (std::size_t i = 0; i < sizes.hidden; ++i) {
      double sum = 0, magnitude = 1;
      for (std::size_t k = 0; k < per_token; ++k) {
        const double term = routing.weight[t * per_token + k] * batch.out.row(routing.slot[t * per_token + k])[i];
        sum += term;
        magnitude += std::fabs(term);
      }
      // Three products of at most max(hidden, width) terms of size about 1 each follow one another.
      const double terms = static_cast<double>(3 * std::max(sizes.hidden, sizes.width));
      EXPECT_NEAR(sum, exact[i], terms * epsilon * magnitude) << "token " << t << ", column " << i;
    }
  }
}

TEST(AssignSlots, OrdersSlotsByExpertAndKeepsTokensInOrder) {
  std::mt19937 random(6);
  const TestMixture mixture = random_mixture({16, 8, 3, 1, 1, 4, true}, random);
  Routing routing;
  routing.expert = {2, 3, 0, 3, 2, 3, 2, 3};  // tokens 0 to 3, each through one routed expert and the shared one
  routing.slot.resize(8);
  routing.token_of_slot.resize(8);
  routing.first_slot.resize(5);
  assign_slots(mixture.moe, 4, routing);
  EXPECT_EQ(routing.first_slot, (std::vector<std::size_t>{0, 1, 1, 4, 8}));
  EXPECT_EQ(routing.token_of_slot, (std::vector<std::size_t>{1, 0, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(routing.slot, (std::vector<std::size_t>{1, 4, 0, 5, 2, 6, 3, 7}));
}

// q, keys and values of a batch behind `before` positions.
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
  for (float& number : test.q) number = normal(random);
  for (auto* of_positions : {&test.k, &test.v}) {
    // What all types of cache hold exactly: steps of 1/32 to 126, and one of 127 in each block.
    for (std::size_t i = 0; i < of_positions->size(); ++i) {
      const float steps = std::clamp(std::nearbyint(32 * normal(random)), -126.0f, 126.0f);
      (*of_positions)[i] = (i % head_dim % 32 == 0 ? std::copysign(127.0f, steps) : steps) / 32;
    }
  }
  return test;
}

std::vector<float> attended(const TestAttention& test, KvType type, std::size_t workers,
                            const kernels::Table& table = kernels::choose()) {
  const Config& config = test.config;
  const std::size_t head_dim = config.head_dim, q_cols = config.num_attention_heads * head_dim;
  const std::size_t kv_cols = config.num_key_value_heads * head_dim, positions = test.before + test.tokens;
  KvCache cache(config, positions, type);
  for (std::size_t position = 0; position < positions; ++position) {
    for (std::size_t kv_head = 0; kv_head < config.num_key_value_heads; ++kv_head) {
      const std::size_t at = position * kv_cols + kv_head * head_dim;
      cache.put(table, 0, kv_head, position, &test.k[at], &test.v[at]);
    }
  }
  cache.advance(test.before);
  std::vector<float> q = test.q, out(test.queries * q_cols, NAN);
  const AttentionBatch batch{.q = {q.data(), test.queries, q_cols},
                             .k = {nullptr, test.tokens, kv_cols},
                             .v = {},
                             .cos = {},
                             .sin = {},
                             .out = {out.data(), test.queries, q_cols}};
  run_team(workers, [&](Worker& worker) {
    const std::size_t rows = attention_tile_rows(config);
    std::vector<float> tile_q(rows * head_dim), tile_out(rows * head_dim), scores(rows * positions, NAN),
        block_scores(rows * positions, NAN);
    const AttentionScratch scratch{.q = {tile_q.data(), rows, head_dim},
                                   .scores = {scores.data(), rows, positions},
                                   .block_scores = {block_scores.data(), rows, positions},
                                   .out = {tile_out.data(), rows, head_dim}};
    attend(table, config, batch, 0, cache, scratch, worker);
  });
  return out;
}

// One head of one query against the definition.
void expect_attention(const TestAttention& test, const std::vector<float>& out, std::size_t query, std::size_t head) {
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
  const double bound = (2 * score_error + static_cast<double>(2 * seen + 40) * epsilon) * largest;
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
            for (std::size_t head = 0; head < heads; ++head) expect_attention(test, out, query, head);
          }
        }
      }
    }
  }
}

TEST(Attend, GivesTheSameBitsWithAnyNumberOfWorkersAndKeysHeldAsF16) {
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

TEST(Attend, OfQ8_0ShowsWhatIsNotFiniteToTheQueriesThatSeeIt) {
  constexpr std::size_t head_dim = 48, queries = 30, bad_position = 17 + 11;
  const kernels::TableList tables = kernels::runnable();
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (const bool in_key : {true, false}) {
      TestAttention test = random_attention(head_dim, 2, 1, 17, 30, queries);
      (in_key ? test.k : test.v)[bad_position * head_dim + 40] = bad;
      for (std::size_t i = 0; i < tables.count; ++i) {
        const std::vector<float> out = attended(test, KvType::q8_0, 1, *tables.tables[i]);
        for (std::size_t at = 0; at < out.size(); ++at) {
          const bool seen = 17 + at / (2 * head_dim) >= bad_position, in_block = in_key || at % head_dim >= 32;
          ASSERT_EQ(std::isnan(out[at]), seen && in_block) << tables.tables[i]->name << ", number " << at;
        }
      }
    }
  }
}

}  // namespace
}  // namespace minimind
