#pragma once

#include "weights/model/config.h"

namespace minimind {

// Between these pairs of a head, YaRN (Peng et al. 2023, arXiv:2309.00071) goes over from kept to divided frequencies.
struct YarnRamp {
  double low;   // a pair that turns beta_fast times within the original context
  double high;  // one that turns beta_slow times; may be below low, which means a step at low
};

// config.rope_scaling must be YaRN.
YarnRamp yarn_ramp(const Config& config);

// Whether transformers and llama.cpp, which clamp the ramp's end to head_dim - 1, compute the same frequencies.
bool has_usual_yarn_ramp(const Config& config);

// Whether MiniMind's own code, which clamps it to head_dim / 2 - 1, does.
bool has_minimind_yarn_ramp(const Config& config);

}  // namespace minimind
