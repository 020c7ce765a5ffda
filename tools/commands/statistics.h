#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace minimind {

// The probabilities of all next tokens: the softmax of a row of logits, computed in double. They are NaN if a logit is
// not finite. An object may be reused for many rows, which keeps its memory.
class Distribution {
 public:
  // Computes the softmax of `logits`, at least one, which it copies.
  void assign(std::span<const float> logits);

  // In nats.
  double log_probability(std::size_t token) const { return logits_[token] - log_sum_; }

  // Returns the token with the largest logit, the first of equals.
  std::size_t top1() const { return top1_; }

  // Returns KL(this || other) = sum of p (ln p - ln q), in nats. Both must have the same number of tokens. Rounding may
  // give about -1e-16 for equal distributions.
  double kl_divergence_to(const Distribution& other) const;

 private:
  std::vector<double> logits_;        // less the largest
  std::vector<double> exponentials_;  // of those
  double sum_ = 0;                    // of the exponentials
  double log_sum_ = 0;
  std::size_t top1_ = 0;
};

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

// Returns the value below which `fraction` of the values are, interpolated linearly between neighbours as
// numpy.percentile does. Requires at least one value.
double quantile(std::vector<double> values, double fraction);

}  // namespace minimind
