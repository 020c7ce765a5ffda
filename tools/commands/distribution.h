#pragma once

#include <cstddef>
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

}  // namespace minimind
