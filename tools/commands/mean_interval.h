#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace minimind {

// The values of one group: of a text, or of a window of a long one.
struct GroupSum {
  double sum = 0;
  std::size_t count = 0;
};

struct Interval {
  double low, high;
};

inline constexpr std::size_t fewest_groups = 10;  // below, an interval would say more about its assumptions

// Returns the 95 % confidence interval of the mean over all values, for values that depend on each other within a group
// but not between groups: the groups are the sample, and the mean is the ratio of their sums to their counts, whose
// variance is that of the sums' residuals (Cochran, Sampling Techniques, section 6.4). Its quantile is Student's for
// one degree of freedom less than there are groups. std::nullopt for fewer than fewest_groups with values.
std::optional<Interval> interval_of_mean(std::span<const GroupSum> groups);

}  // namespace minimind
