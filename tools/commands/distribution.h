#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace minimind {

// The probabilities of all next tokens that a row of logits stands for: their softmax, computed in double. Logits that
// are not finite make them NaN. One object may be used for many rows: its memory is kept.
class Distribution {
 public:
  // Copies what it needs of `logits`, which are at least one.
  void assign(std::span<const float> logits);

  // In nats.
  double log_probability(std::size_t token) const { return logits_[token] - log_sum_; }

  // The token of the largest logit, the first of equals.
  std::size_t likeliest() const { return likeliest_; }

  // KL(this || other) = sum of p (ln p - ln q), in nats: what it costs to take `other` for this one. Both are over
  // equally many tokens. Rounding may leave some -1e-16 where they are the same.
  double kl_divergence_to(const Distribution& other) const;

 private:
  std::vector<double> logits_;        // less the largest
  std::vector<double> exponentials_;  // of those
  double sum_ = 0;                    // of the exponentials
  double log_sum_ = 0;
  std::size_t likeliest_ = 0;
};

}  // namespace minimind
