#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace minimind {

// The numbers from which quantisers of 32 values make their scales.
inline constexpr std::size_t quantized_values = 32;

// A scale whose inverse overflows is 0 as a binary16, so the codes do not matter; 0 keeps them defined.
inline float inverse_of(float scale) {
  const float inverse = scale == 0 ? 0 : 1.0f / scale;
  return std::isfinite(inverse) ? inverse : 0;
}

struct Bounds {
  float lowest, highest;
};

// A bound of 0 has any sign: which of equal numbers is found depends on the machine.
inline Bounds bounds_of(const float* values) {
  float highest = values[0], lowest = values[0];
#pragma omp simd reduction(max : highest) reduction(min : lowest)
  for (std::size_t i = 0; i < quantized_values; ++i) {
    highest = std::max(highest, values[i]);
    lowest = std::min(lowest, values[i]);
  }
  return {lowest, highest};
}

// Returns the value of largest magnitude; of equals, the first.
inline float extreme_of(const float* values) {
  const auto [lowest, highest] = bounds_of(values);
  if (highest != -lowest) return highest > -lowest ? highest : lowest;
  return *std::find_if(values, values + quantized_values,
                       [largest = highest](float value) { return std::fabs(value) == largest; });
}

}  // namespace minimind
