#include "runtime/inside/attribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/kernels/instruction_sets.h"
#include "tests/support/golden_model.h"

namespace minimind {
namespace {

std::vector<TokenAccount> accounts(const Model& model, const GoldenCase& golden) {
  const std::span<const std::int32_t> tokens(golden.tokens);
  const Recording recording = record(model, kernels::choose(), KvType::f32, points_of_accounts(model),
                                     tokens.first(tokens.size() - 1), [](std::size_t) {});
  return account_for(model, recording, tokens, golden.prompt_len, 3);
}

class AccountTest : public testing::TestWithParam<std::string> {};

TEST_P(AccountTest, SumsToTheLogit) {
  const GoldenCase golden = load_golden(GetParam());
  for (const TokenAccount& account : accounts(load_golden_model(golden), golden)) {
    double sum = account.embedding, largest = std::abs(account.logit);
    for (const LayerShare& share : account.layers) {
      sum += share.attention + share.feed_forward;
      largest = std::max({largest, std::abs(share.attention), std::abs(share.feed_forward)});
    }
    EXPECT_NEAR(sum + account.rest, account.logit, 1e-9);
    EXPECT_LT(std::abs(account.rest), 1e-5 * largest);
  }
}

// The golden texts are greedy, so that the token is the first candidate and what the last layer's lens shows.
TEST_P(AccountTest, AgreesWithTheLogits) {
  const GoldenCase golden = load_golden(GetParam());
  for (const TokenAccount& account : accounts(load_golden_model(golden), golden)) {
    const float* const logits = &golden.logits[(account.position - 1) * golden.vocab];
    EXPECT_NEAR(account.logit, logits[account.token], 2e-4);
    double sum = 0;
    for (std::size_t i = 0; i < golden.vocab; ++i) sum += std::exp(static_cast<double>(logits[i]));
    EXPECT_NEAR(account.probability, std::exp(static_cast<double>(logits[account.token])) / sum, 1e-4);
    ASSERT_EQ(account.candidates.size(), 3);
    EXPECT_EQ(account.candidates.front().token, account.token);
    EXPECT_GE(account.candidates[0].probability, account.candidates[1].probability);
    EXPECT_EQ(account.layers.back().lens.token, account.token);
    EXPECT_NEAR(account.layers.back().lens.probability, account.probability, 1e-4);
  }
}

TEST_P(AccountTest, NamesPositionsAndExpertsByFallingWeight) {
  const GoldenCase golden = load_golden(GetParam());
  const Model model = load_golden_model(golden);
  for (const TokenAccount& account : accounts(model, golden)) {
    for (const LayerShare& share : account.layers) {
      EXPECT_EQ(share.experts.size(), model.config.num_experts > 0 ? model.config.num_experts_per_tok : 0);
      ASSERT_EQ(share.heads.size(), model.config.num_attention_heads);
      for (const auto& head : share.heads) {
        ASSERT_EQ(head.size(), 3);
        EXPECT_TRUE(std::is_sorted(head.rbegin(), head.rend(),
                                   [](const auto& a, const auto& b) { return a.second < b.second; }));
        for (const auto& [position, weight] : head) EXPECT_LT(position, account.position);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, AccountTest,
                         testing::Values("v1-moe", "v2-moe-5-experts", "v3-dense", "v3-moe", "v3-untied",
                                         "v3-plain-gelu-bias"),
                         test_name);

}  // namespace
}  // namespace minimind
