#include "runtime/inside/vector_math.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "weights/base/cancel.h"

namespace minimind {
namespace {

constexpr std::size_t at_once = 4;  // whose sums do not wait for each other

// Multiplies a row with so many vectors [at_once, n].
void dot_products(const float* row, const float* vectors, std::size_t n, float* products) {
  const float *const a = vectors, *const b = a + n, *const c = b + n, *const d = c + n;
  float of_a = 0, of_b = 0, of_c = 0, of_d = 0;
#pragma omp simd reduction(+ : of_a, of_b, of_c, of_d)
  for (std::size_t i = 0; i < n; ++i) {
    of_a += row[i] * a[i];
    of_b += row[i] * b[i];
    of_c += row[i] * c[i];
    of_d += row[i] * d[i];
  }
  products[0] = of_a;
  products[1] = of_b;
  products[2] = of_c;
  products[3] = of_d;
}

double sum_of_squares(std::span<const float> x) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  return sum;
}

}  // namespace

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

std::vector<double> softmax(std::span<const float> x) {
  const auto most = static_cast<double>(*std::max_element(x.begin(), x.end()));
  std::vector<double> all;
  all.reserve(x.size());
  double sum = 0;
  for (const float value : x) sum += all.emplace_back(std::exp(static_cast<double>(value) - most));
  for (double& each : all) each /= sum;
  return all;
}

double euclidean_norm(std::span<const float> x) {
  return std::sqrt(sum_of_squares(x));
}

double norm_scale(std::span<const float> x, double eps) {
  return 1 / std::sqrt(sum_of_squares(x) / static_cast<double>(x.size()) + eps);
}

void multiply_output(const Model& model, std::span<const float> vectors,
                     const std::function<void(std::size_t token, std::span<const float> products)>& take) {
  const std::size_t d = model.config.hidden_size, count = vectors.size() / d;
  const std::size_t padded = (count + at_once - 1) / at_once * at_once;
  std::vector<float> all(vectors.begin(), vectors.end()), row(d), products(padded);
  all.resize(padded * d);
  for (std::size_t token = 0; token < model.config.vocab_size; ++token) {
    check_cancelled();
    read_row(model.output(), token, row.data());
    for (std::size_t i = 0; i < padded; i += at_once) dot_products(row.data(), &all[i * d], d, &products[i]);
    take(token, std::span(products).first(count));
  }
}

}  // namespace minimind
