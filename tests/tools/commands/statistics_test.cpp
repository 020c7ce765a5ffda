#include "tools/commands/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <random>
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

// 1 to 10: the standard deviation is 3.02765, Student's quantile for 9 degrees 2.26216.
TEST(MeanInterval, OfSingleValuesIsStudents) {
  std::vector<GroupSum> groups;
  for (int i = 1; i <= 10; ++i) groups.push_back({static_cast<double>(i), 1});
  const std::optional<Interval> interval = interval_of_mean(groups);
  ASSERT_TRUE(interval);
  const double half = 2.2621571628 * 3.0276503541 / std::sqrt(10);
  EXPECT_NEAR(interval->low, 5.5 - half, 1e-3);
  EXPECT_NEAR(interval->high, 5.5 + half, 1e-3);
}

// Repeating every value of a group changes nothing: there are no more groups than before.
TEST(MeanInterval, CountsGroupsAndNotValues) {
  std::vector<GroupSum> once, often;
  for (int i = 1; i <= 20; ++i) {
    once.push_back({0.1 * i, 1});
    often.push_back({0.1 * i * 50, 50});
  }
  EXPECT_NEAR(interval_of_mean(once)->low, interval_of_mean(often)->low, 1e-12);
  EXPECT_NEAR(interval_of_mean(once)->high, interval_of_mean(often)->high, 1e-12);
}

TEST(MeanInterval, WeighsGroupsByTheirCounts) {
  std::vector<GroupSum> groups(15, {2, 1});
  groups.push_back({8, 4});
  const std::optional<Interval> interval = interval_of_mean(groups);
  EXPECT_DOUBLE_EQ(interval->low, 2) << "all values are equal";
  EXPECT_DOUBLE_EQ(interval->high, 2);
}

TEST(MeanInterval, IsUnknownForFewGroups) {
  std::vector<GroupSum> groups(9, {1, 10});
  EXPECT_FALSE(interval_of_mean(groups));
  groups.push_back({});
  EXPECT_FALSE(interval_of_mean(groups)) << "an empty group is none";
  groups.push_back({1, 10});
  EXPECT_TRUE(interval_of_mean(groups));
  EXPECT_FALSE(interval_of_mean({}));
}

// Groups of different lengths whose values share a part, as those of a text do.
TEST(MeanInterval, CoversTheMeanNineteenTimesInTwenty) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  constexpr int trials = 2000;
  int covered = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<GroupSum> groups;
    for (int i = 0; i < 40; ++i) {
      const double shared = normal(random);
      GroupSum group;
      for (group.count = 0; group.count < 20u + i; ++group.count) group.sum += 3 + shared + normal(random);
      groups.push_back(group);
    }
    const std::optional<Interval> interval = interval_of_mean(groups);
    covered += interval->low < 3 && 3 < interval->high;
  }
  EXPECT_NEAR(static_cast<double>(covered) / trials, 0.95, 0.015);
}

// numpy.percentile([5, 1, 4, 2], [0, 50, 99, 100]) is [1, 3, 4.97, 5].
TEST(Quantile, IsInterpolatedAsNumpyDoes) {
  const std::vector<double> values{5, 1, 4, 2};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 3);
  EXPECT_DOUBLE_EQ(quantile(values, 0.99), 4.97);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 5);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.99), 7);
}

}  // namespace
}  // namespace minimind
