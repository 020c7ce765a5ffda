#pragma once

// Included by kernels-inl.h and int8_rows-inl.h only: activations rounded to 8 bits.

#include <cstdint>
#include <cstring>

#include "runtime/kernels/kernels.h"
#include "runtime/kernels/simd-inl.h"

namespace minimind::kernels {
namespace {

inline std::int16_t sum_of_half(const std::int8_t* quants) {
#if defined(__SSE2__)
  // psadbw adds unsigned bytes, so each byte gets a bias of 128.
  const __m128i biased = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(quants)), _mm_set1_epi8(-128));
  const __m128i sums = _mm_sad_epu8(biased, _mm_setzero_si128());
  return static_cast<std::int16_t>(_mm_cvtsi128_si32(sums) + _mm_extract_epi16(sums, 4) - 128 * 16);
#elif defined(__aarch64__)
  return vaddlvq_s8(vld1q_s8(quants));
#endif
}

// Rounds 16 floats to 8-bit integers, halves to even; their magnitude must be at most 127.
inline void store_int8(const Column& x, std::int8_t* out) {
#if defined(__AVX512F__)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x.part[0])));
#elif defined(__AVX2__)
  const __m256i words =
      _mm256_permute4x64_epi64(_mm256_packs_epi32(_mm256_cvtps_epi32(x.part[0]), _mm256_cvtps_epi32(x.part[1])), 0xD8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                   _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
#elif defined(__SSE2__)
  const __m128i low = _mm_packs_epi32(_mm_cvtps_epi32(x.part[0]), _mm_cvtps_epi32(x.part[1]));
  const __m128i high = _mm_packs_epi32(_mm_cvtps_epi32(x.part[2]), _mm_cvtps_epi32(x.part[3]));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_packs_epi16(low, high));
#elif defined(__aarch64__)
  int16x4_t words[4];
  for (int i = 0; i < 4; ++i) words[i] = vqmovn_s32(vcvtnq_s32_f32(x.part[i]));
  vst1q_s8(out,
           vcombine_s8(vqmovn_s16(vcombine_s16(words[0], words[1])), vqmovn_s16(vcombine_s16(words[2], words[3]))));
#endif
}

static_assert(block_cols == 2 * panel_rows);

inline ActivationBlock rounded(const Column (&halves)[2]) {
  Floats most(0.0f), nothing(0.0f);
  for (const Column& column : halves) {
    for (std::size_t p = 0; p < parts; ++p) {
      most = xsimd::max(most, xsimd::abs(column.part[p]));
      nothing = fma(column.part[p], Floats(0.0f), nothing);  // NaN if a value is not finite
    }
  }
  const float largest_value = largest_of(most);
  const bool tiny = largest_value < 1e-30f;
  ActivationBlock out;
  out.scale = (tiny ? 0.0f : largest_value / 127.0f) + sum_of(nothing);
  const Floats by(tiny ? 0.0f : 127.0f / largest_value);
  for (std::size_t i = 0; i < 2; ++i) {
    Column scaled;
    for (std::size_t p = 0; p < parts; ++p) scaled.part[p] = halves[i].part[p] * by;
    store_int8(scaled, out.quant + i * panel_rows);
  }
  out.low_sum = sum_of_half(out.quant);
  out.sum = static_cast<std::int16_t>(out.low_sum + sum_of_half(out.quant + block_cols / 2));
  out.scaled_sum = out.scale * static_cast<float>(out.sum);
  return out;
}

inline void quantize(const float* x, std::size_t n, ActivationBlock* out) noexcept {
  for (; n >= block_cols; n -= block_cols, x += block_cols)
    *out++ = rounded({load_column(x), load_column(x + panel_rows)});
  if (n == 0) return;
  float padded[block_cols] = {};
  std::memcpy(padded, x, n * sizeof(float));
  *out = rounded({load_column(padded), load_column(padded + panel_rows)});
}

inline void quantize_scaled(const float* x, const F16* scale, std::size_t n, ActivationBlock* out) noexcept {
  const auto block_of = [](const float* values, const std::uint16_t* scales) {
    return rounded({product(load_column(values), load_f16(scales)),
                    product(load_column(values + panel_rows), load_f16(scales + panel_rows))});
  };
  const auto* scales = reinterpret_cast<const std::uint16_t*>(scale);
  for (; n >= block_cols; n -= block_cols, x += block_cols, scales += block_cols) *out++ = block_of(x, scales);
  if (n == 0) return;
  float padded[block_cols] = {};
  std::uint16_t padded_scales[block_cols] = {};
  std::memcpy(padded, x, n * sizeof(float));
  std::memcpy(padded_scales, scales, n * sizeof(std::uint16_t));
  *out = block_of(padded, padded_scales);
}

}  // namespace
}  // namespace minimind::kernels
