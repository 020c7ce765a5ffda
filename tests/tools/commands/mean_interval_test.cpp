#include "tools/commands/mean_interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>
#include <vector>

namespace minimind {
namespace {

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

}  // namespace
}  // namespace minimind
