#pragma once

// Included by kernels-inl.h only: loads a column of a panel from each encoding as floats and stores it. Written per
// instruction set, because xsimd 8.1 has neither binary16 nor widening loads.

#include <xsimd/xsimd.hpp>

#include "runtime/kernels/kernels.h"
#include "weights/tensor/half.h"

namespace minimind::kernels {
namespace {

using Arch = MINIMIND_ARCH;
using Floats = xsimd::batch<float, Arch>;

constexpr std::size_t lanes = Floats::size;
constexpr std::size_t parts = panel_rows / lanes;  // registers that hold one column of a panel

inline Floats load(const float* at) {
  return Floats::load_unaligned(at);
}

// a * b + c, rounded once where the instruction set can. xsimd 8.1 leaves it to the compiler for AVX-512.
inline Floats fma(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#else
  return xsimd::fma(a, b, c);
#endif
}

inline float sum_of(Floats x) {
#if XSIMD_VERSION_MAJOR >= 9
  return xsimd::reduce_add(x);
#else
  return xsimd::hadd(x);
#endif
}

#if defined(__SSE2__)
inline float largest_of(__m128 x) {
  x = _mm_max_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_max_ss(x, _mm_shuffle_ps(x, x, 1)));
}
#endif

inline float largest_of(Floats x) {
#if defined(__AVX512F__)
  return _mm512_reduce_max_ps(x);
#elif defined(__AVX2__)
  return largest_of(_mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1)));
#elif defined(__SSE2__)
  return largest_of(static_cast<__m128>(x));
#elif defined(__aarch64__)
  return vmaxvq_f32(x);
#endif
}

// The 16 values of a column of a panel, in `parts` registers.
struct Column {
  Floats part[parts];
};

inline Column load_column(const float* at) {
  Column column;
  for (std::size_t p = 0; p < parts; ++p) column.part[p] = load(at + p * lanes);
  return column;
}

#if defined(__AVX512F__)

inline Column load_f16(const std::uint16_t* at) {
  return {{_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)))}};
}

inline Column load_bf16(const std::uint16_t* at) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  return {{_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))}};
}

inline void store_f16(const Column& x, std::uint16_t* out) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_cvtps_ph(x.part[0], _MM_FROUND_TO_NEAREST_INT));
}

#elif defined(__AVX2__)

inline Column load_f16(const std::uint16_t* at) {
  const __m128i* halves = reinterpret_cast<const __m128i*>(at);
  return {{_mm256_cvtph_ps(_mm_loadu_si128(halves)), _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))}};
}

inline Floats widen_bf16(__m128i eight) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(eight), 16));
}

inline Column load_bf16(const std::uint16_t* at) {
  const __m128i* halves = reinterpret_cast<const __m128i*>(at);
  return {{widen_bf16(_mm_loadu_si128(halves)), widen_bf16(_mm_loadu_si128(halves + 1))}};
}

inline void store_f16(const Column& x, std::uint16_t* out) {
  for (std::size_t p = 0; p < parts; ++p) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out) + p, _mm256_cvtps_ph(x.part[p], _MM_FROUND_TO_NEAREST_INT));
  }
}

#elif defined(__SSE2__)

// SSE2 cannot convert binary16. Shifted into the fields of binary32, a value is too small by 2^112, which one product
// corrects, subnormals included; infinities and NaN get the largest exponent.
inline Floats widen_f16(__m128i low_halves) {
  const __m128i magnitude = _mm_and_si128(low_halves, _mm_set1_epi32(0x7FFF));
  const __m128i sign = _mm_slli_epi32(_mm_xor_si128(low_halves, magnitude), 16);
  const __m128i shifted = _mm_slli_epi32(magnitude, 13);
  const __m128 scaled = _mm_mul_ps(_mm_castsi128_ps(shifted), _mm_set1_ps(0x1p112f));
  const __m128i special = _mm_and_si128(_mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x7BFF)), _mm_set1_epi32(0x7F800000));
  return _mm_castsi128_ps(_mm_or_si128(_mm_or_si128(_mm_castps_si128(scaled), special), sign));
}

inline Column load_f16(const std::uint16_t* at) {
  const __m128i zero = _mm_setzero_si128();
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at) + 1);
  return {{widen_f16(_mm_unpacklo_epi16(low, zero)), widen_f16(_mm_unpackhi_epi16(low, zero)),
           widen_f16(_mm_unpacklo_epi16(high, zero)), widen_f16(_mm_unpackhi_epi16(high, zero))}};
}

inline void store_f16(const Column& x, std::uint16_t* out) {
  float values[panel_rows];
  for (std::size_t p = 0; p < parts; ++p) x.part[p].store_unaligned(values + p * lanes);
  for (std::size_t i = 0; i < panel_rows; ++i) out[i] = to_f16(values[i]).bits;
}

inline Column load_bf16(const std::uint16_t* at) {
  const __m128i zero = _mm_setzero_si128();
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at) + 1);
  return {{_mm_castsi128_ps(_mm_unpacklo_epi16(zero, low)), _mm_castsi128_ps(_mm_unpackhi_epi16(zero, low)),
           _mm_castsi128_ps(_mm_unpacklo_epi16(zero, high)), _mm_castsi128_ps(_mm_unpackhi_epi16(zero, high))}};
}

#elif defined(__aarch64__)

inline Column load_f16(const std::uint16_t* at) {
  Column column;
  for (std::size_t p = 0; p < parts; ++p) column.part[p] = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(at + 4 * p)));
  return column;
}

inline Column load_bf16(const std::uint16_t* at) {
  Column column;
  for (std::size_t p = 0; p < parts; ++p) column.part[p] = vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(at + 4 * p), 16));
  return column;
}

inline void store_f16(const Column& x, std::uint16_t* out) {
  for (std::size_t p = 0; p < parts; ++p) vst1_u16(out + 4 * p, vreinterpret_u16_f16(vcvt_f16_f32(x.part[p])));
}

#endif

inline Column product(const Column& a, const Column& b) {
  Column result;
  for (std::size_t p = 0; p < parts; ++p) result.part[p] = a.part[p] * b.part[p];
  return result;
}

}  // namespace
}  // namespace minimind::kernels
