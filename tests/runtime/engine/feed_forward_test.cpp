#include "runtime/engine/feed_forward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "runtime/kernels/instruction_sets.h"
#include "tests/support/epsilon.h"
#include "tests/support/packed.h"

namespace minimind {
namespace {

using Rows = std::vector<std::vector<double>>;

// A random float matrix: its values, and packed for the kernels.
struct TestMatrix {
  Rows values;
  WeightMatrix packed;
};

TestMatrix random_matrix(std::size_t rows, std::size_t cols, std::mt19937& random, WeightType type = std::nullopt) {
  std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(cols)));
  std::vector<std::byte> bytes(rows * cols * sizeof(float));
  Rows values(rows, std::vector<double>(cols));
  for (std::size_t i = 0; i < rows * cols; ++i) {
    const float value = normal(random);
    values[i / cols][i % cols] = value;
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  const StoredTensor stored{
      .dtype = DType::f32, .shape = {rows, cols}, .data = StoredBytes(std::move(bytes)), .file = "test"};
  return {std::move(values), pack(stored, type, 1)};
}

std::vector<double> times(const Rows& matrix, const std::vector<double>& x) {
  std::vector<double> y;
  for (const auto& row : matrix) y.push_back(std::inner_product(row.begin(), row.end(), x.begin(), 0.0));
  return y;
}

struct TestFfn {
  Rows gate, up, down;
};

// down(silu(gate x) * up x), in double precision.
std::vector<double> run(const TestFfn& ffn, const std::vector<double>& x) {
  std::vector<double> hidden = times(ffn.gate, x);
  const std::vector<double> up = times(ffn.up, x);
  for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] = hidden[i] / (1 + std::exp(-hidden[i])) * up[i];
  return times(ffn.down, hidden);
}

struct Sizes {
  std::size_t hidden, width, experts, shared, per_token, tokens;
  bool normalize;
};

struct TestMoe {
  Rows router;
  std::vector<TestFfn> ffns;
  MixtureOfExperts moe;
};

TestMoe random_moe(const Sizes& sizes, std::mt19937& random) {
  TestMatrix router = random_matrix(sizes.experts, sizes.hidden, random);
  TestMoe test{std::move(router.values),
               {},
               {.router = std::move(router.packed),
                .experts = {},
                .routed_experts = sizes.experts,
                .experts_per_token = sizes.per_token,
                .normalize = sizes.normalize}};
  for (std::size_t e = 0; e < sizes.experts + sizes.shared; ++e) {
    TestMatrix gate = random_matrix(sizes.width, sizes.hidden, random);
    TestMatrix up = random_matrix(sizes.width, sizes.hidden, random);
    TestMatrix down = random_matrix(sizes.hidden, sizes.width, random);
    test.ffns.push_back({std::move(gate.values), std::move(up.values), std::move(down.values)});
    test.moe.experts.push_back({.gate_proj = std::move(gate.packed),
                                .up_proj = std::move(up.packed),
                                .down_proj = std::move(down.packed),
                                .gate_bias = {},
                                .up_bias = {},
                                .down_bias = {}});
  }
  return test;
}

// The definition of the MoE layer, for one token.
std::vector<double> moe_of(const TestMoe& test, const std::vector<double>& x) {
  std::vector<double> scores = times(test.router, x);
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score);
  for (double& score : scores) score /= sum;
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  order.resize(test.moe.experts_per_token);
  double chosen = 0;
  for (const std::size_t e : order) chosen += scores[e];
  std::vector<double> out(x.size());
  const auto add = [&](std::size_t e, double weight) {
    const std::vector<double> y = run(test.ffns[e], x);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += weight * y[i];
  };
  for (const std::size_t e : order) add(e, test.moe.normalize ? scores[e] / chosen : scores[e]);
  for (std::size_t e = test.moe.routed_experts; e < test.ffns.size(); ++e) add(e, 1);
  return out;
}

// A model of one layer that has only the feed-forward half.
Model model_with(const MixtureOfExperts& moe, const Sizes& sizes) {
  const WeightMatrix nothing(*find_matrix_format(DType::f32), 0, 0, nullptr);
  Model model{
      .config = {}, .rope = {}, .embed_tokens = nothing, .layers = {}, .norm = {}, .lm_head = {}, .type_fallbacks = {}};
  model.config.hidden_size = sizes.hidden;
  model.config.num_experts = sizes.experts;
  model.config.num_experts_per_tok = sizes.per_token;
  model.config.n_shared_experts = sizes.shared;
  model.layers.push_back({{}, {nothing, nothing, nothing, nothing, {}, {}}, {}, moe});
  return model;
}

class MoeLayer : public testing::TestWithParam<Sizes> {};

INSTANTIATE_TEST_SUITE_P(Ops, MoeLayer,
                         testing::Values(Sizes{32, 24, 4, 0, 1, 9, true}, Sizes{32, 24, 4, 0, 1, 9, false},
                                         Sizes{48, 75, 5, 2, 3, 20, false}, Sizes{48, 75, 5, 2, 3, 20, true},
                                         Sizes{16, 8, 3, 1, 3, 1, true},
                                         // So many tokens and columns that a worker takes them in parts.
                                         Sizes{16, 793, 2, 1, 1, 150, true}));

// The steps of Forward's MoE layer, with one worker, versus the definition.
TEST_P(MoeLayer, EqualsTheLoopInDoublePrecision) {
  const Sizes sizes = GetParam();
  std::mt19937 random(5);
  TestMoe test = random_moe(sizes, random);
  std::vector<float> x(sizes.tokens * sizes.hidden), y(x.size());
  std::normal_distribution<float> normal;
  for (float& value : x) value = normal(random);

  const FeedForwardScratch scratch(model_with(test.moe, sizes), sizes.tokens, 1);
  Routing routing = scratch.routing.front();
  const std::size_t per_token = sizes.per_token + sizes.shared;
  const Range slots{0, sizes.tokens * per_token};
  const Matrix<const float> input{x.data(), sizes.tokens, sizes.hidden};
  run_team(1, [&](Worker& worker) {
    const auto& table = kernels::choose();
    route(table, test.moe, input, scratch.router_scores.rows({0, sizes.tokens}, sizes.experts), routing, worker);
    assign_slots(test.moe, sizes.tokens, routing);
    gather(routing, input, scratch.gathered.rows(slots), worker);
    for (std::size_t e = 0; e < test.moe.experts.size(); ++e) {
      const Range of_e = routing.slots_of(e);
      if (of_e.empty()) continue;
      const FeedForward& expert = test.moe.experts[e];
      const Activations normed{.exact = as_const(scratch.gathered.rows(of_e))};
      gate_up(table, HiddenAct::silu, expert, normed, of_e, scratch, worker);
      const Activations h{.exact = as_const(hidden(expert, of_e, scratch))};
      down(table, expert, h, of_e, scratch, worker);
    }
    add_experts(table, routing, as_const(scratch.out.rows(slots)), {y.data(), sizes.tokens, sizes.hidden}, worker);
  });

  for (std::size_t t = 0; t < sizes.tokens; ++t) {
    const std::vector<double> exact = moe_of(test, {input.row(t), input.row(t) + sizes.hidden});
    for (std::size_t i = 0; i < sizes.hidden; ++i) {
      double magnitude = 1;
      for (std::size_t k = 0; k < per_token; ++k) {
        magnitude += std::fabs(routing.weight[t * per_token + k] * scratch.out.row(routing.slot[t * per_token + k])[i]);
      }
      // Three products of at most max(hidden, width) terms of size about 1 each follow one another.
      const double terms = static_cast<double>(3 * std::max(sizes.hidden, sizes.width));
      EXPECT_NEAR(y[t * sizes.hidden + i], exact[i], terms * epsilon * magnitude) << "token " << t << ", column " << i;
    }
  }
}

// Workers that compute tokens alone take some columns at a time; those of a team divide the columns.
TEST(GateUp, HasTheSameBitsInParts) {
  constexpr std::size_t slots = 256, cols = 64, width = 793;
  std::mt19937 random(8);
  std::normal_distribution<float> normal;
  std::vector<float> x(slots * cols);
  for (float& value : x) value = normal(random);
  for (const DType type : {DType::f32, DType::f16, DType::q8_0, DType::q4_0, DType::q8_r}) {
    MixtureOfExperts one{.router = random_matrix(1, cols, random).packed,
                         .experts = {},
                         .routed_experts = 1,
                         .experts_per_token = 1,
                         .normalize = true};
    std::vector<float> bias(width);
    for (float& value : bias) value = normal(random);
    one.experts.push_back({.gate_proj = random_matrix(width, cols, random, type).packed,
                           .up_proj = random_matrix(width, cols, random, type).packed,
                           .down_proj = random_matrix(cols, 32, random, type).packed,
                           .gate_bias = bias,
                           .up_bias = bias,
                           .down_bias = {}});
    const FeedForward& ffn = one.experts.front();
    const Rounding* const rounding = ffn.up_proj.format().rounding;
    const std::size_t row_bytes = rounding ? rounding->row_bytes(cols) : 0;
    const Buffer<std::byte> rounded(slots, std::max<std::size_t>(1, row_bytes));
    const Activations all{{x.data(), slots, cols}, {rounding ? rounded.row(0) : nullptr, slots, row_bytes}};
    const FeedForwardScratch whole(model_with(one, {cols, width, 1, 0, 1, slots, true}), slots, 2);
    const FeedForwardScratch parts(model_with(one, {cols, width, 1, 0, 1, slots, true}), slots, 2);
    for (const kernels::Table& table : kernels::runnable()) {
      for (std::size_t t = 0; rounding && t < slots; ++t) {
        rounding->round(table, x.data() + t * cols, cols, rounded.row(t));
      }
      run_team(2, [&](Worker& worker) {
        gate_up(table, HiddenAct::silu, ffn, all, {0, slots}, whole, worker);
        const Range own = worker.share(slots);
        gate_up(table, HiddenAct::silu, ffn, all.row_range(own), own, parts, worker.alone());
      });
      const Matrix<float> expected = hidden(ffn, {0, slots}, whole), found = hidden(ffn, {0, slots}, parts);
      EXPECT_EQ(std::memcmp(found.data, expected.data, slots * width * sizeof(float)), 0)
          << name_of(type) << ", " << table.name;
    }
  }
}

TEST(AssignSlots, OrdersSlotsByExpertAndKeepsTokensInOrder) {
  std::mt19937 random(6);
  const TestMoe test = random_moe({16, 8, 3, 1, 1, 4, true}, random);
  Routing routing;
  routing.expert = {2, 3, 0, 3, 2, 3, 2, 3};  // tokens 0 to 3, each through one routed expert and the shared one
  routing.slot.resize(8);
  routing.token_of_slot.resize(8);
  routing.first_slot.resize(5);
  assign_slots(test.moe, 4, routing);
  EXPECT_EQ(routing.first_slot, (std::vector<std::size_t>{0, 1, 1, 4, 8}));
  EXPECT_EQ(routing.token_of_slot, (std::vector<std::size_t>{1, 0, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(routing.slot, (std::vector<std::size_t>{1, 4, 0, 5, 2, 6, 3, 7}));
}

}  // namespace
}  // namespace minimind
