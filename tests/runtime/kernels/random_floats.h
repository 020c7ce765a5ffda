#pragma once

#include <cstddef>
#include <random>
#include <vector>

namespace minimind {

// Returns n normally distributed values, the same for the same seed.
inline std::vector<float> random_floats(std::size_t n, unsigned seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

}  // namespace minimind
