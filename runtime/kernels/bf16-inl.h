#pragma once

// Included by avx512bf16.cpp and amxbf16.cpp only: what their products share.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/kernels/kernels.h"
#include "weights/tensor/half.h"

namespace minimind::kernels {
namespace {

inline void store_rounded(__m512 low, __m512 high, Bf16* out) {
  _mm512_storeu_si512(out, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

void round_to_bf16(const float* x, std::size_t n, Bf16* out) noexcept {
  for (; n >= block_cols; n -= block_cols, x += block_cols, out += block_cols) {
    store_rounded(_mm512_loadu_ps(x), _mm512_loadu_ps(x + panel_rows), out);
  }
  if (n == 0) return;
  float padded[block_cols] = {};
  std::memcpy(padded, x, n * sizeof(float));
  store_rounded(_mm512_loadu_ps(padded), _mm512_loadu_ps(padded + panel_rows), out);
}

// Stores up to 16 rows of y.
inline void store_rows(float* y, std::size_t rows, __m512 sum) {
  const auto mask = static_cast<__mmask16>(rows >= panel_rows ? 0xFFFF : (1u << rows) - 1);
  _mm512_mask_storeu_ps(y, mask, sum);
}

}  // namespace
}  // namespace minimind::kernels
