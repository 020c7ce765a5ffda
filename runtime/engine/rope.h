#pragma once

#include <vector>

#include "weights/model/config.h"

namespace minimind {

// Rotary position embedding (Su et al. 2021, arXiv:2104.09864): at position p, pair i of a head is turned by the angle
// p * frequencies[i].
struct Rope {
  std::vector<float> frequencies;  // [head_dim / 2]
  float attention_factor = 1;      // multiplies cosines and sines; other than 1 only with some scalings
};

// frequencies[i] = theta^(-2i / head_dim), stretched as config.rope_scaling says. Computed in float in the order of
// PyTorch's code, because at far positions the angle multiplies every rounding.
Rope make_rope(const Config& config);

// The cosines and sines of one position; both are [head_dim / 2].
void rope_angles(const Rope& rope, std::size_t position, float* cos, float* sin);

}  // namespace minimind
