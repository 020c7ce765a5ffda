#pragma once

// Included by the products of block types only: 8-bit integer arithmetic of each instruction set. For the 16 rows of a
// panel, the products of four columns with four activations are added exactly, in `Sums` of 32 bits per row.

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/simd-inl.h"

namespace minimind::kernels {
namespace {

constexpr std::size_t groups = block_cols / group_cols;

// Each kind of dot product has
//   start(sum)               sums of 0, given the sum of the activations of the block or part
//   add(sums, weights, four) sums += weights * the four activations
//   most_groups              how many groups may be added before flush(sums)
//   finish(sums)             as floats
// SignedDot takes weights from -128 to 127, BiasedDot<bias> weights plus `bias`. packed_groups-inl.h has others. Each
// instruction set has Group, four columns of 16 rows, and RowSums, 32 bits for each row. vpdpbusd, of VNNI, multiplies
// unsigned by signed integers.

inline std::int32_t four_of(const std::int8_t* activations) {
  std::int32_t four;
  __builtin_memcpy(&four, activations, sizeof four);
  return four;
}

#if defined(__AVX512VNNI__)

using Group = __m512i;

inline Group load_group(const void* at) {
  return _mm512_loadu_si512(at);
}

inline Group plus_128(Group weights) {
  return _mm512_xor_si512(weights, _mm512_set1_epi8(-128));
}

struct RowSums {
  __m512i rows;
  static RowSums all(std::int32_t sum) { return {_mm512_set1_epi32(sum)}; }
  void add(Group weights, std::int32_t four) { rows = _mm512_dpbusd_epi32(rows, weights, _mm512_set1_epi32(four)); }
  void pin() { asm volatile("" : "+v"(rows)); }
  Column to_floats() const { return {{_mm512_cvtepi32_ps(rows)}}; }
};

#elif defined(__AVX2__)

struct Group {
  __m256i rows[2];
};

struct RowSums {
  __m256i rows[2];
  static RowSums all(std::int32_t sum) { return {{_mm256_set1_epi32(sum), _mm256_set1_epi32(sum)}}; }
  void pin() { asm volatile("" : "+x"(rows[0]), "+x"(rows[1])); }
  Column to_floats() const { return {{_mm256_cvtepi32_ps(rows[0]), _mm256_cvtepi32_ps(rows[1])}}; }
#if defined(__AVXVNNI__)
  void add(const Group& weights, std::int32_t four) {
    for (int i = 0; i < 2; ++i) {
      rows[i] = _mm256_dpbusd_avx_epi32(rows[i], weights.rows[i], _mm256_set1_epi32(four));
    }
  }
#else
  // vpmaddubsw multiplies unsigned by signed integers and saturates at 16 bits: the signs of the weights move to the
  // activations, and 2 * 128 * 127 fits.
  void add(const Group& weights, std::int32_t four) {
    const __m256i activations = _mm256_set1_epi32(four);
    for (int i = 0; i < 2; ++i) {
      const __m256i signs_moved = _mm256_sign_epi8(activations, weights.rows[i]);
      const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(weights.rows[i]), signs_moved);
      rows[i] = _mm256_add_epi32(rows[i], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
  }
#endif
};

#if defined(__AVXVNNI__)
inline Group plus_128(Group weights) {
  for (__m256i& bytes : weights.rows) bytes = _mm256_xor_si256(bytes, _mm256_set1_epi8(-128));
  return weights;
}
#endif

#elif defined(__SSE2__)

struct Group {
  __m128i rows[4];
};

// Two sums for each row, of the even and of the odd pairs of columns: rows 2i and 2i + 1 in pairs[i].
struct RowSums {
  __m128i pairs[8];
  static RowSums all(std::int32_t sum) {
    RowSums sums;
    for (__m128i& pair : sums.pairs) pair = _mm_set_epi32(0, sum, 0, sum);
    return sums;
  }
  void pin() {}
  void add(const Group& weights, std::int32_t four) {
    const __m128i bytes = _mm_set1_epi32(four);
    const __m128i activations = _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
    for (int i = 0; i < 4; ++i) {
      const __m128i w = weights.rows[i];
#if defined(__wasm__)
      const __m128i low = wasm_i16x8_extend_low_i8x16(w), high = wasm_i16x8_extend_high_i8x16(w);
#else
      const __m128i low = _mm_srai_epi16(_mm_unpacklo_epi8(w, w), 8), high = _mm_srai_epi16(_mm_unpackhi_epi8(w, w), 8);
#endif
      pairs[2 * i] = _mm_add_epi32(pairs[2 * i], _mm_madd_epi16(low, activations));
      pairs[2 * i + 1] = _mm_add_epi32(pairs[2 * i + 1], _mm_madd_epi16(high, activations));
    }
  }
  Column to_floats() const {
    Column column;
    for (std::size_t i = 0; i < 4; ++i) {
      const __m128 low = _mm_castsi128_ps(pairs[2 * i]), high = _mm_castsi128_ps(pairs[2 * i + 1]);
      const __m128i even = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)));
      const __m128i odd = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)));
      column.part[i] = _mm_cvtepi32_ps(_mm_add_epi32(even, odd));
    }
    return column;
  }
};

#elif defined(__aarch64__)

struct Group {
  int8x16_t rows[4];
};

#if defined(__ARM_FEATURE_DOTPROD)
struct RowSums {
  int32x4_t rows[4];
  static RowSums all(std::int32_t sum) {
    const int32x4_t four = vdupq_n_s32(sum);
    return {{four, four, four, four}};
  }
  void pin() { asm volatile("" : "+w"(rows[0]), "+w"(rows[1]), "+w"(rows[2]), "+w"(rows[3])); }
  void add(const Group& weights, std::int32_t four) {
    const int8x16_t activations = vreinterpretq_s8_s32(vdupq_n_s32(four));
    for (int i = 0; i < 4; ++i) rows[i] = vdotq_s32(rows[i], weights.rows[i], activations);
  }
  Column to_floats() const {
    Column column;
    for (int i = 0; i < 4; ++i) column.part[i] = vcvtq_f32_s32(rows[i]);
    return column;
  }
};
#else
// Two sums for each row, of the even and of the odd pairs of columns: rows 2i and 2i + 1 in pairs[i].
struct RowSums {
  int32x4_t pairs[8];
  static RowSums all(std::int32_t sum) {
    RowSums sums;
    const std::int32_t both[4] = {sum, 0, sum, 0};
    for (int32x4_t& pair : sums.pairs) pair = vld1q_s32(both);
    return sums;
  }
  void pin() {}
  void add(const Group& weights, std::int32_t four) {
    const int8x8_t activations = vreinterpret_s8_s32(vdup_n_s32(four));
    for (int i = 0; i < 4; ++i) {
      const int8x16_t w = weights.rows[i];
      pairs[2 * i] = vpadalq_s16(pairs[2 * i], vmull_s8(vget_low_s8(w), activations));
      pairs[2 * i + 1] = vpadalq_s16(pairs[2 * i + 1], vmull_s8(vget_high_s8(w), activations));
    }
  }
  Column to_floats() const {
    Column column;
    for (std::size_t i = 0; i < 4; ++i) {
      column.part[i] = vcvtq_f32_s32(vpaddq_s32(pairs[2 * i], pairs[2 * i + 1]));
    }
    return column;
  }
};
#endif

#endif

template <int weight_bias>
struct BiasedDot {
  static constexpr int bias = weight_bias;
  using Sums = RowSums;
  static Sums start(std::int32_t sum) { return RowSums::all(-bias * sum); }
  static void add(Sums& sums, const Group& weights, const std::int8_t* four) { sums.add(weights, four_of(four)); }
  static constexpr std::size_t most_groups = groups;
  static void flush(Sums&) {}
  static Column finish(const Sums& sums) { return sums.to_floats(); }
};

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
struct SignedDot : BiasedDot<128> {
  static void add(Sums& sums, Group weights, const std::int8_t* four) { sums.add(plus_128(weights), four_of(four)); }
};
#else
using SignedDot = BiasedDot<0>;
#endif

#if !defined(__AVX512VNNI__)
inline Group load_group(const void* at) {
  Group group;
  const char* bytes = static_cast<const char*>(at);
  for (auto& row : group.rows) {
    __builtin_memcpy(&row, bytes, sizeof row);
    bytes += sizeof row;
  }
  return group;
}
#endif

}  // namespace
}  // namespace minimind::kernels
