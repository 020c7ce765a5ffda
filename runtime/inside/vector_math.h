#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace minimind {

float dot(const float* a, const float* b, std::size_t n);

// Returns the indices of the `most` largest values, the largest first; of equal ones, the first one first.
std::vector<std::size_t> largest(std::span<const float> values, std::size_t most);

// 1 / sqrt(mean(x²) + eps)
double norm_scale(std::span<const float> x, double eps);

}  // namespace minimind
