// Included by kernels-inl.h only: a column of a panel of weights, as floats, from each encoding. This is where
// instruction sets differ, because xsimd 8.1 knows neither binary16 nor widening loads.

#include <xsimd/xsimd.hpp>

#include "runtime/kernels/kernels.h"

namespace minimind::kernels {
namespace {

using Arch = MINIMIND_ARCH;
using Floats = xsimd::batch<float, Arch>;

constexpr std::size_t lanes = Floats::size;
constexpr std::size_t parts = panel_rows / lanes;  // registers that hold one column of a panel

inline Floats load(const float* at) {
  return Floats::load_unaligned(at);
}

inline float sum_of(Floats x) {
#if XSIMD_VERSION_MAJOR >= 9
  return xsimd::reduce_add(x);
#else
  return xsimd::hadd(x);
#endif
}

// 16 numbers in a column of a panel, in `parts` registers.
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

inline Column from_int8(__m128i bytes) {
  return {{_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))}};
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

inline Column from_int8(__m128i bytes) {
  return {{_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
           _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))}};
}

#elif defined(__SSE2__)

// SSE2 cannot convert binary16. Shifted into binary32's fields it is off by 2^112, which one product mends, subnormals
// included; infinities and NaN get the exponent they need.
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

inline Column load_bf16(const std::uint16_t* at) {
  const __m128i zero = _mm_setzero_si128();
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at) + 1);
  return {{_mm_castsi128_ps(_mm_unpacklo_epi16(zero, low)), _mm_castsi128_ps(_mm_unpackhi_epi16(zero, low)),
           _mm_castsi128_ps(_mm_unpacklo_epi16(zero, high)), _mm_castsi128_ps(_mm_unpackhi_epi16(zero, high))}};
}

inline Floats widen_int16_low(__m128i x) {
  return _mm_cvtepi32_ps(_mm_srai_epi32(_mm_unpacklo_epi16(x, x), 16));
}
inline Floats widen_int16_high(__m128i x) {
  return _mm_cvtepi32_ps(_mm_srai_epi32(_mm_unpackhi_epi16(x, x), 16));
}

inline Column from_int8(__m128i bytes) {
  const __m128i low = _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
  const __m128i high = _mm_srai_epi16(_mm_unpackhi_epi8(bytes, bytes), 8);
  return {{widen_int16_low(low), widen_int16_high(low), widen_int16_low(high), widen_int16_high(high)}};
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

inline Column from_int8(int8x16_t bytes) {
  const int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_s8(vget_high_s8(bytes));
  return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(low))),
           vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(high)))}};
}

#endif

// 16 bytes: quants of a block type.
#if defined(__SSE2__)

using Bytes = __m128i;

inline Bytes load_bytes(const void* at) {
  return _mm_loadu_si128(static_cast<const __m128i*>(at));
}

template <bool high>
inline Bytes load_nibbles(const std::uint8_t* at) {
  const Bytes bytes = load_bytes(at);
  return _mm_and_si128(high ? _mm_srli_epi16(bytes, 4) : bytes, _mm_set1_epi8(0x0F));
}

inline Bytes less_8(Bytes nibbles) {
  return _mm_sub_epi8(nibbles, _mm_set1_epi8(8));
}

// codes[nibble]
inline Bytes look_up(const std::int8_t (&codes)[16], Bytes nibbles) {
#if defined(__SSSE3__)
  return _mm_shuffle_epi8(load_bytes(codes), nibbles);
#else
  // SSE2 has no shuffle of bytes by bytes: the steps from code to code are added up. Through memory it takes three
  // times as long.
  Bytes values = _mm_set1_epi8(codes[0]);
  for (int k = 1; k < 16; ++k) {
    const Bytes step = _mm_set1_epi8(static_cast<char>(codes[k] - codes[k - 1]));
    values =
        _mm_add_epi8(values, _mm_and_si128(_mm_cmpgt_epi8(nibbles, _mm_set1_epi8(static_cast<char>(k - 1))), step));
  }
  return values;
#endif
}

#else

using Bytes = int8x16_t;

inline Bytes load_bytes(const std::int8_t* at) {
  return vld1q_s8(at);
}

template <bool high>
inline Bytes load_nibbles(const std::uint8_t* at) {
  const uint8x16_t bytes = vld1q_u8(at);
  return vreinterpretq_s8_u8(high ? vshrq_n_u8(bytes, 4) : vandq_u8(bytes, vdupq_n_u8(0x0F)));
}

inline Bytes less_8(Bytes nibbles) {
  return vsubq_s8(nibbles, vdupq_n_s8(8));
}

// codes[nibble]
inline Bytes look_up(const std::int8_t (&codes)[16], Bytes nibbles) {
  return vqtbl1q_s8(load_bytes(codes), vreinterpretq_u8_s8(nibbles));
}

#endif

}  // namespace
}  // namespace minimind::kernels
