#include "tools/commands/statistics.h"

#include <algorithm>
#include <cmath>

namespace minimind {
namespace {

// Returns Student's 97.5 % quantile by its expansion in 1 / degrees around the normal one (Abramowitz and
// Stegun, 26.7.5), to four digits from fewest_groups - 1 degrees on.
double student_quantile(double degrees) {
  constexpr double z = 1.959963984540054;
  constexpr double z2 = z * z;
  const double first = z * (z2 + 1) / 4;
  const double second = z * ((5 * z2 + 16) * z2 + 3) / 96;
  const double third = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
  return z + (first + (second + third / degrees) / degrees) / degrees;
}

}  // namespace

void Distribution::assign(std::span<const float> logits) {
  top1_ = static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  const double largest = logits[top1_];
  logits_.resize(logits.size());
  exponentials_.resize(logits.size());
  sum_ = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits_[i] = logits[i] - largest;
    exponentials_[i] = std::exp(logits_[i]);
    sum_ += exponentials_[i];
  }
  log_sum_ = std::log(sum_);
}

double Distribution::kl_divergence_to(const Distribution& other) const {
  double sum = 0;
  for (std::size_t i = 0; i < exponentials_.size(); ++i) {
    sum += exponentials_[i] * (log_probability(i) - other.log_probability(i));
  }
  return sum / sum_;
}

std::optional<Interval> interval_of_mean(std::span<const GroupSum> groups) {
  double sum = 0, count = 0, used = 0;
  for (const GroupSum& group : groups) {
    sum += group.sum;
    count += static_cast<double>(group.count);
    used += group.count > 0;
  }
  if (used < fewest_groups) return std::nullopt;
  const double mean = sum / count;
  double squares = 0;
  for (const GroupSum& group : groups) {
    const double residual = group.sum - mean * static_cast<double>(group.count);
    squares += residual * residual;
  }
  const double half = student_quantile(used - 1) * std::sqrt(squares * used / (used - 1)) / count;
  return Interval{mean - half, mean + half};
}

double quantile(std::vector<double> values, double fraction) {
  std::sort(values.begin(), values.end());
  const double rank = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], rank - static_cast<double>(below));
}

}  // namespace minimind
