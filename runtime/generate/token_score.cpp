#include "runtime/generate/token_score.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/generate/sampler.h"

namespace minimind {

TokenScore score_token(std::span<const float> logits, std::int32_t token, std::size_t top) {
  check_finite(logits);
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  const double log_sum = std::log(sum);
  const auto scored = [&](std::int32_t id) {
    return ScoredToken{id, logits[static_cast<std::size_t>(id)] - largest - log_sum};
  };
  TokenScore score{.token = scored(token), .top = {}};
  std::vector<std::int32_t> ids(top > 0 ? logits.size() : 0);
  std::iota(ids.begin(), ids.end(), 0);
  top = std::min(top, ids.size());
  const auto logit_of = [&](std::int32_t id) { return logits[static_cast<std::size_t>(id)]; };
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(top), ids.end(),
                    [&](std::int32_t a, std::int32_t b) {
                      return logit_of(a) > logit_of(b) || (logit_of(a) == logit_of(b) && a < b);
                    });
  for (std::size_t i = 0; i < top; ++i) score.top.push_back(scored(ids[i]));
  return score;
}

}  // namespace minimind
