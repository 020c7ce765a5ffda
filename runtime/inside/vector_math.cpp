#include "runtime/inside/vector_math.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace minimind {

float dot(const float* a, const float* b, std::size_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<std::size_t> largest(std::span<const float> values, std::size_t most) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(most, order.size()));
  std::partial_sort(order.begin(), end, order.end(), [&](std::size_t a, std::size_t b) {
    return values[a] > values[b] || (values[a] == values[b] && a < b);
  });
  order.erase(end, order.end());
  return order;
}

double norm_scale(std::span<const float> x, double eps) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  return 1 / std::sqrt(sum / static_cast<double>(x.size()) + eps);
}

}  // namespace minimind
