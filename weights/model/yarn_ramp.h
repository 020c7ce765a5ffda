#pragma once

#include "weights/model/config.h"

namespace minimind {

// Which other programs compute the frequencies of a config whose rope_scaling is YaRN.

// Returns true if transformers and llama.cpp, which clamp the ramp's end to head_dim - 1, compute these frequencies. If
// the ramp's end is before its start, transformers' ramp falls.
inline bool has_usual_yarn_ramp(const Config& config) {
  const YarnRamp ramp = yarn_ramp(config, config.rope_scaling->ramp_end);
  return ramp.low <= ramp.high && ramp.high == yarn_ramp(config, RopeScaling::RampEnd::head_dim).high;
}

// Returns true if MiniMind's own code, which clamps the ramp's end to head_dim / 2 - 1, computes these frequencies.
inline bool has_minimind_yarn_ramp(const Config& config) {
  return yarn_ramp(config, config.rope_scaling->ramp_end).high ==
         yarn_ramp(config, RopeScaling::RampEnd::half_head_dim).high;
}

}  // namespace minimind
