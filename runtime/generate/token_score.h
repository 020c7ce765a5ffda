#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace minimind {

struct ScoredToken {
  std::int32_t token;
  double log_probability;  // in nats

  bool operator==(const ScoredToken&) const = default;
};

// A token of a text and how likely the model found it there: by the softmax of the untouched logits, before any step of
// sampling.
struct TokenScore {
  ScoredToken token;
  std::vector<ScoredToken> top;  // the most likely tokens, the most likely first, of equals the smallest id

  bool operator==(const TokenScore&) const = default;
};

// Scores `token` by the logits [vocab] after which it came, with up to `top` alternatives. Throws Error if the logits
// have NaN or infinity.
TokenScore score_token(std::span<const float> logits, std::int32_t token, std::size_t top);

}  // namespace minimind
