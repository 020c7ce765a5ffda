#include "runtime/inside/neurons.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/inside/attribution.h"
#include "runtime/kernels/instruction_sets.h"
#include "tests/support/golden_model.h"

namespace minimind {
namespace {

class NeuronTest : public testing::TestWithParam<std::string> {};

// All neurons of a layer together raise a token as much as its FFN does, whose biases are none.
TEST_P(NeuronTest, SumToTheShareOfTheFeedForward) {
  const GoldenCase golden = load_golden(GetParam());
  const Model model = load_golden_model(golden);
  const Recording recording =
      record(model, kernels::choose(), KvType::f32, points_of(model), golden.tokens, [](std::size_t) {});
  const std::size_t token = golden.tokens.size() - 2;
  const TokenAccount account = account_for(model, recording, golden.tokens, token + 1, 1).front();
  const auto layers = strong_neurons(model, recording, token, 100'000, golden.vocab);
  ASSERT_EQ(layers.size(), account.layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    double sum = 0;
    for (const StrongNeuron& neuron : layers[i]) {
      EXPECT_EQ(neuron.raises.size(), golden.vocab);
      for (const auto& [raised, logit] : neuron.raises) sum += raised == account.token ? logit : 0;
    }
    EXPECT_NEAR(sum, account.layers[i].feed_forward, 2e-5) << "layer " << i;
  }
}

TEST_P(NeuronTest, AreThoseThatAddMost) {
  const GoldenCase golden = load_golden(GetParam());
  const Model model = load_golden_model(golden);
  const Recording recording =
      record(model, kernels::choose(), KvType::f32, points_of_neurons(model), golden.tokens, [](std::size_t) {});
  const auto all = strong_neurons(model, recording, 2, 100'000, 1), some = strong_neurons(model, recording, 2, 3, 2);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto by_norm = [](const StrongNeuron& a, const StrongNeuron& b) { return a.norm > b.norm; };
    EXPECT_TRUE(std::is_sorted(all[i].begin(), all[i].end(), by_norm));
    ASSERT_EQ(some[i].size(), 3u);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(some[i][rank].index, all[i][rank].index);
      EXPECT_EQ(some[i][rank].expert, all[i][rank].expert);
      ASSERT_EQ(some[i][rank].raises.size(), 2u);
      EXPECT_GE(some[i][rank].raises[0].second, some[i][rank].raises[1].second);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, NeuronTest, testing::Values("v1-moe", "v2-moe-5-experts", "v3-dense", "v3-moe"),
                         test_name);

}  // namespace
}  // namespace minimind
