// Included by kernels-inl.h only: the peak speed of memory and of arithmetic in f32, for `minimind bench`.

#include "runtime/kernels/simd-inl.h"

namespace minimind::kernels {
namespace {

// Independent sums, which hide the latency of an addition: two units with a latency of four to six cycles require 8 to
// 12, which with two operands still fit in 16 registers.
constexpr std::size_t chains = 12;

inline float sum_of(const Floats (&sums)[chains]) {
  Floats total = sums[0];
  for (std::size_t i = 1; i < chains; ++i) total = total + sums[i];
  return sum_of(total);
}

float read(const float* x, std::size_t n) noexcept {
  Floats sums[chains];
  for (Floats& sum : sums) sum = Floats(0.0f);
  std::size_t i = 0;
  for (; i + chains * lanes <= n; i += chains * lanes) {
    for (std::size_t chain = 0; chain < chains; ++chain) sums[chain] = sums[chain] + load(x + i + chain * lanes);
  }
  float rest = 0;
  for (; i < n; ++i) rest += x[i];
  return sum_of(sums) + rest;
}

float multiply_add(float factor, float addend, std::size_t rounds) noexcept {
  const Floats by(factor), plus(addend);
  Floats sums[chains];
  // All different; otherwise the compiler computes one of them and copies it.
  for (std::size_t chain = 0; chain < chains; ++chain) sums[chain] = Floats(static_cast<float>(chain));
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t chain = 0; chain < chains; ++chain) sums[chain] = fma(sums[chain], by, plus);
  }
  return sum_of(sums);
}

}  // namespace
}  // namespace minimind::kernels
