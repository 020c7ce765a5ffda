// The one source of every kernel. Each instruction set's .cpp defines MINIMIND_ARCH (an xsimd architecture) and
// MINIMIND_TABLE (the name of its table) and includes this file once. Everything except the table has internal linkage,
// so that the linker never uses code compiled for one instruction set in another.

#include <cstring>
#include <xsimd/xsimd.hpp>

#include "runtime/kernels/kernels.h"
#include "runtime/kernels/matmul-inl.h"
#include "runtime/kernels/quantize-inl.h"
#include "runtime/kernels/roofline-inl.h"
#include "runtime/kernels/simd-inl.h"
#if !defined(__AVX512F__)
#include "runtime/kernels/block_matmul-inl.h"
#endif

namespace minimind::kernels {
namespace {

// Loads the last n < lanes values of an array; the other lanes are `rest`.
inline Floats load_tail(const float* at, std::size_t n, float rest) {
  float padded[lanes];
  for (std::size_t i = 0; i < lanes; ++i) padded[i] = i < n ? at[i] : rest;
  return load(padded);
}

inline void store_tail(float* at, std::size_t n, Floats x) {
  float padded[lanes];
  x.store_unaligned(padded);
  std::memcpy(at, padded, n * sizeof(float));
}

// Computes x = f(x, y) over whole vectors and the tail.
template <class Function>
inline void update(float* x, const float* y, std::size_t n, Function f) {
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) f(load(x + i), load(y + i)).store_unaligned(x + i);
  if (i < n) store_tail(x + i, n - i, f(load_tail(x + i, n - i, 0), load_tail(y + i, n - i, 0)));
}

inline float dot(const float* x, const float* y, std::size_t n) {
  Floats sum(0.0f);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) sum = fma(load(x + i), load(y + i), sum);
  if (i < n) sum = fma(load_tail(x + i, n - i, 0), load_tail(y + i, n - i, 0), sum);
  return sum_of(sum);
}

void rms_norm(const float* x, const float* weight, std::size_t n, float eps, float* out) noexcept {
  const float mean_square = dot(x, x, n) / static_cast<float>(n);
  const Floats scale(1.0f / __builtin_sqrtf(mean_square + eps));
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) (load(x + i) * scale * load(weight + i)).store_unaligned(out + i);
  if (i < n) store_tail(out + i, n - i, load_tail(x + i, n - i, 0) * scale * load_tail(weight + i, n - i, 0));
}

void rope_halves(float* head, const float* cos, const float* sin, std::size_t head_dim) noexcept {
  const std::size_t half = head_dim / 2;
  float* const low = head;
  float* const high = head + half;
  for (std::size_t i = 0; i < half; ++i) {
    const float a = low[i], b = high[i];
    low[i] = a * cos[i] - b * sin[i];
    high[i] = b * cos[i] + a * sin[i];
  }
}

void rope_adjacent_pairs(float* head, const float* cos, const float* sin, std::size_t head_dim) noexcept {
  for (std::size_t i = 0; i < head_dim / 2; ++i) {
    const float a = head[2 * i], b = head[2 * i + 1];
    head[2 * i] = a * cos[i] - b * sin[i];
    head[2 * i + 1] = a * sin[i] + b * cos[i];
  }
}

constexpr float lowest = -__FLT_MAX__;

inline float largest(const float* x, std::size_t n) {
  Floats most(lowest);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) most = xsimd::max(most, load(x + i));
  if (i < n) most = xsimd::max(most, load_tail(x + i, n - i, lowest));
  return largest_of(most);
}

// Flattened, as activate(), because a function of xsimd that is not inlined is visible to the linker.
[[gnu::flatten]] void softmax(float* x, std::size_t n) noexcept {
  const Floats most(largest(x, n));
  Floats sum(0.0f);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Floats e = xsimd::exp(load(x + i) - most);
    e.store_unaligned(x + i);
    sum = sum + e;
  }
  if (i < n) {
    // exp of the padding is exactly 0.
    const Floats e = xsimd::exp(load_tail(x + i, n - i, lowest) - most);
    store_tail(x + i, n - i, e);
    sum = sum + e;
  }
  const Floats scale(1.0f / sum_of(sum));
  update(x, x, n, [&](Floats e, Floats) { return e * scale; });
}

void add(float* x, const float* y, std::size_t n) noexcept {
  update(x, y, n, [](Floats a, Floats b) { return a + b; });
}

void add_scaled(float* x, const float* y, float scale, std::size_t n) noexcept {
  const Floats factor(scale);
  update(x, y, n, [&](Floats a, Floats b) { return fma(factor, b, a); });
}

void round_to_f16(const float* x, std::size_t n, F16* out) noexcept {
  auto* const halves = reinterpret_cast<std::uint16_t*>(out);
  std::size_t i = 0;
  for (; i + panel_rows <= n; i += panel_rows) store_f16(load_column(x + i), halves + i);
  if (i == n) return;
  float padded[panel_rows] = {};
  std::uint16_t rounded[panel_rows];
  std::memcpy(padded, x + i, (n - i) * sizeof(float));
  store_f16(load_column(padded), rounded);
  std::memcpy(halves + i, rounded, (n - i) * sizeof(std::uint16_t));
}

inline Floats sigmoid(Floats x) {
  return Floats(1.0f) / (Floats(1.0f) + xsimd::exp(-x));
}

inline Floats gelu(Floats x) {
  return Floats(0.5f) * x * (Floats(1.0f) + xsimd::erf(x * Floats(0.70710678118654752f)));
}

// The tanh approximation of Hendrycks & Gimpel 2016, arXiv:1606.08415.
inline Floats gelu_tanh(Floats x) {
  const Floats inner = Floats(0.79788456080286536f) * (x + Floats(0.044715f) * x * x * x);
  return Floats(0.5f) * x * (Floats(1.0f) + xsimd::tanh(inner));
}

template <class Function>
inline void activate_with(float* gate, const float* up, std::size_t n, Function f) {
  if (up) {
    update(gate, up, n, [&](Floats g, Floats u) { return f(g) * u; });
  } else {
    update(gate, gate, n, [&](Floats g, Floats) { return f(g); });
  }
}

[[gnu::flatten]] void activate(Activation activation, float* gate, const float* up, std::size_t n) noexcept {
  switch (activation) {
    case Activation::silu:
      return activate_with(gate, up, n, [](Floats x) { return x * sigmoid(x); });
    case Activation::sigmoid:
      return activate_with(gate, up, n, [](Floats x) { return sigmoid(x); });
    case Activation::relu:
      return activate_with(gate, up, n, [](Floats x) { return xsimd::max(x, Floats(0.0f)); });
    case Activation::gelu:
      return activate_with(gate, up, n, [](Floats x) { return gelu(x); });
    case Activation::gelu_tanh:
      return activate_with(gate, up, n, [](Floats x) { return gelu_tanh(x); });
    case Activation::linear:
      return activate_with(gate, up, n, [](Floats x) { return x; });
  }
}

}  // namespace

#define MINIMIND_STRING_OF(name) #name
#define MINIMIND_STRING(name) MINIMIND_STRING_OF(name)

const Table MINIMIND_TABLE = {
    .name = MINIMIND_STRING(MINIMIND_TABLE),
    .matmul_f32 = matmul<F32Encoding>,
    .matmul_f16 = matmul<F16Encoding>,
    .matmul_bf16 = matmul<Bf16Encoding>,
#if !defined(__AVX512F__)
    .q8_0 = {block_matmul<Q8Block>},
#else
    .q8_0 = {},  // instruction_sets.cpp adds those of AVX2 or VNNI
#endif
    .quantize = quantize,
    .quantize_scaled = quantize_scaled,
    .rms_norm = rms_norm,
    .rope_halves = rope_halves,
    .rope_adjacent_pairs = rope_adjacent_pairs,
    .round_to_f16 = round_to_f16,
    .softmax = softmax,
    .activate = activate,
    .add = add,
    .add_scaled = add_scaled,
    .blocks = nullptr,
    .i8 = {},
    .bf16 = nullptr,
    .read = read,
    .multiply_add = multiply_add,
    .multiply_adds_per_round = chains * lanes,
};

}  // namespace minimind::kernels
