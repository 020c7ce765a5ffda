#pragma once

#include <vector>

#include "runtime/kernels/kernels.h"
#include "weights/model/config.h"

namespace minimind {

// Rotary position embedding (Su et al. 2021, arXiv:2104.09864): at position p, pair i of a head is rotated by the angle
// p * frequencies[i].
struct Rope {
  std::vector<float> frequencies;  // [head_dim / 2]
  float attention_factor = 1;      // multiplies cosines and sines; 1 without YaRN
};

// Computes frequencies[i] = theta^(-2i / head_dim), scaled by config.rope_scaling, in float and in the order of
// PyTorch's code, because large positions magnify every rounding.
Rope make_rope(const Config& config);

// Computes the cosines and sines of one position, both [head_dim / 2].
void rope_angles(const Rope& rope, std::size_t position, float* cos, float* sin);

// Rotates one head [head_dim] of a query or key in place by the angles with these cosines and sines.
void rotate(const kernels::Table& kernels, const Config& config, const float* cos, const float* sin, float* head);

}  // namespace minimind
