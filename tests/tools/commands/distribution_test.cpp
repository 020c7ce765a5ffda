#include "tools/commands/distribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace minimind {
namespace {

Distribution of(const std::vector<float>& logits) {
  Distribution distribution;
  distribution.assign(logits);
  return distribution;
}

// A sum of a few doubles of about 1.
constexpr double rounding = 1e-15;

TEST(Distribution, IsTheSoftmaxOfTheLogits) {
  const Distribution distribution = of({0, std::log(2.0f), -1000});
  EXPECT_NEAR(distribution.log_probability(0), -std::log(3.0), 1e-7);  // log(2) is a float
  EXPECT_NEAR(distribution.log_probability(1), std::log(2.0 / 3.0), 1e-7);
  EXPECT_NEAR(distribution.log_probability(2), -1000 - std::log(3.0), 1e-7);
  EXPECT_EQ(distribution.top1(), 1u);
}

TEST(Distribution, DoesNotOverflowAndReplacesTheLastRow) {
  Distribution distribution = of({1, 2, 3, 4});
  distribution.assign(std::vector<float>{3e38f, 3e38f});
  EXPECT_NEAR(distribution.log_probability(0), -std::log(2.0), rounding);
  EXPECT_EQ(distribution.top1(), 0u) << "the first of equals";
}

TEST(Distribution, KlDivergenceEqualsItsDefinition) {
  const double p[] = {0.5, 0.25, 0.25}, q[] = {0.125, 0.125, 0.75};
  std::vector<float> p_logits, q_logits;
  double expected = 0;
  for (int i = 0; i < 3; ++i) {
    p_logits.push_back(static_cast<float>(std::log(p[i])) + 3);
    q_logits.push_back(static_cast<float>(std::log(q[i])) - 5);
    expected += p[i] * std::log(p[i] / q[i]);
  }
  // The logits are floats of about 5: each is off by up to 2^-22.
  EXPECT_NEAR(of(p_logits).kl_divergence_to(of(q_logits)), expected, 3 * 0x1p-22);
  EXPECT_EQ(of(p_logits).kl_divergence_to(of(p_logits)), 0);
}

TEST(Distribution, ATokenWithoutProbabilityAddsNothing) {
  EXPECT_NEAR(of({0, -3e38f}).kl_divergence_to(of({0, 0})), std::log(2.0), rounding);
}

TEST(Distribution, NonFiniteLogitsGiveNan) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {infinity, nan}) {
    EXPECT_FALSE(std::isfinite(of({0, bad, 1}).log_probability(0))) << bad;
    EXPECT_FALSE(std::isfinite(of({0, 1}).kl_divergence_to(of({0, bad})))) << bad;
  }
}

}  // namespace
}  // namespace minimind
