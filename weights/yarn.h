#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "weights/config.h"

namespace minimind {

// The ramp of YaRN (arXiv:2309.00071, section 3.2) in pairs of a head: pairs up to `low` keep their frequency, pairs
// from `high` on have it divided by the factor.
struct YarnRamp {
  double low, high;
};

// The pair that turns `times` times within the original context.
inline double yarn_pair_that_turns(const RopeScaling& yarn, double rope_theta, std::size_t head_dim, double times) {
  return static_cast<double>(head_dim) *
         std::log(yarn.original_max_position_embeddings / (times * 2 * std::numbers::pi)) / (2 * std::log(rope_theta));
}

inline YarnRamp yarn_ramp(const RopeScaling& yarn, double rope_theta, std::size_t head_dim) {
  const double d = static_cast<double>(head_dim);
  const double last = yarn.ramp_end == RopeScaling::RampEnd::half_head_dim ? d / 2 - 1 : d - 1;
  return {std::max(std::floor(yarn_pair_that_turns(yarn, rope_theta, head_dim, yarn.beta_fast)), 0.0),
          std::min(std::ceil(yarn_pair_that_turns(yarn, rope_theta, head_dim, yarn.beta_slow)), last)};
}

// Whether MiniMind's clamp of the ramp's end makes it another ramp than transformers' and llama.cpp's.
inline bool yarn_ramp_is_clamped(const RopeScaling& yarn, double rope_theta, std::size_t head_dim) {
  RopeScaling theirs = yarn;
  theirs.ramp_end = RopeScaling::RampEnd::head_dim;
  return yarn_ramp(yarn, rope_theta, head_dim).high != yarn_ramp(theirs, rope_theta, head_dim).high;
}

}  // namespace minimind
