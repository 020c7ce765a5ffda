#include "tools/commands/distribution.h"

#include <algorithm>
#include <cmath>

namespace minimind {

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

}  // namespace minimind
