#pragma once

#include "weights/model/config.h"

namespace minimind {

// Which other programs compute the frequencies of a config whose rope_scaling is YaRN.

// Returns true if transformers and llama.cpp, which clamp the ramp's end to head_dim - 1, compute these frequencies.
bool has_usual_yarn_ramp(const Config& config);

// Returns true if MiniMind's own code, which clamps the ramp's end to head_dim / 2 - 1, computes these frequencies.
bool has_minimind_yarn_ramp(const Config& config);

}  // namespace minimind
