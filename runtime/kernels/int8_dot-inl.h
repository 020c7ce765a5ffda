#pragma once

// Included by the products of block types only: 8-bit integer arithmetic of each instruction set. For the 16 rows of a
// panel, the products of four columns with four activations are added exactly, in `Sums` of 32 bits per row.

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/simd-inl.h"

namespace minimind::kernels {
namespace {

constexpr std::size_t groups = block_cols / group_cols;

// Each kind of dot product below has
//   start(sum)               sums of 0, given the sum of the activations of the block or part
//   add(sums, weights, four) sums += weights * the four activations
//   most_groups              how many groups may be added before flush(sums)
//   finish(sums)             as floats
// SignedDot takes weights from -128 to 127. packed_groups-inl.h has others.

inline std::int32_t four_of(const std::int8_t* activations) {
  std::int32_t four;
  __builtin_memcpy(&four, activations, sizeof four);
  return four;
}

#if defined(__AVX512VNNI__)

// Four columns of 16 rows.
using Group = __m512i;

inline Group load_group(const void* at) {
  return _mm512_loadu_si512(at);
}

// vpdpbusd multiplies unsigned by signed integers. `bias` makes the weights unsigned; start() subtracts bias times the
// sum of the activations.
template <int weight_bias>
struct BiasedDot {
  static constexpr int bias = weight_bias;
  using Sums = __m512i;
  static Sums start(std::int32_t sum) { return _mm512_set1_epi32(-bias * sum); }
  static void add(Sums& sums, Group weights, const std::int8_t* four) {
    sums = _mm512_dpbusd_epi32(sums, weights, _mm512_set1_epi32(four_of(four)));
  }
  static constexpr std::size_t most_groups = groups;
  static void flush(Sums&) {}
  static Column finish(Sums sums) { return {{_mm512_cvtepi32_ps(sums)}}; }
};
using CodeDot = BiasedDot<128>;
struct SignedDot : CodeDot {
  static void add(Sums& sums, Group weights, const std::int8_t* four) {
    CodeDot::add(sums, _mm512_xor_si512(weights, _mm512_set1_epi8(-128)), four);
  }
};

#elif defined(__AVX2__)

struct Group {
  __m256i rows[2];
};

inline Group load_group(const void* at) {
  const __m256i* bytes = static_cast<const __m256i*>(at);
  return {{_mm256_loadu_si256(bytes), _mm256_loadu_si256(bytes + 1)}};
}

struct Halves {
  __m256i rows[2];
};

inline Column to_floats(const Halves& sums) {
  const __m256 low = _mm256_cvtepi32_ps(sums.rows[0]), high = _mm256_cvtepi32_ps(sums.rows[1]);
  return {{low, high}};
}

// vpmaddubsw multiplies unsigned by signed integers and saturates at 16 bits: the signs of the weights move to the
// activations, and 2 * 128 * 127 fits.
struct SignedDot {
  using Sums = Halves;
  static Sums start(std::int32_t) { return {{_mm256_setzero_si256(), _mm256_setzero_si256()}}; }
  static void add(Sums& sums, const Group& weights, const std::int8_t* four) {
    const __m256i activations = _mm256_set1_epi32(four_of(four));
    for (int i = 0; i < 2; ++i) {
      const __m256i pairs =
          _mm256_maddubs_epi16(_mm256_abs_epi8(weights.rows[i]), _mm256_sign_epi8(activations, weights.rows[i]));
      sums.rows[i] = _mm256_add_epi32(sums.rows[i], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
  }
  static constexpr std::size_t most_groups = groups;
  static void flush(Sums&) {}
  static Column finish(const Sums& sums) { return to_floats(sums); }
};

#elif defined(__SSE2__)

struct Group {
  __m128i rows[4];
};

inline Group load_group(const void* at) {
  Group group;
  for (int i = 0; i < 4; ++i) group.rows[i] = _mm_loadu_si128(static_cast<const __m128i*>(at) + i);
  return group;
}

// Two sums for each row, of the even and of the odd pairs of columns: rows 2i and 2i + 1 in pairs[i].
struct PairSums {
  __m128i pairs[8];
};

template <int bias>
struct BiasedDot {
  using Sums = PairSums;
  static Sums start(std::int32_t sum) {
    Sums sums;
    for (__m128i& pair : sums.pairs) pair = _mm_set_epi32(0, -bias * sum, 0, -bias * sum);
    return sums;
  }
  static void add(Sums& sums, const Group& weights, const std::int8_t* four) {
    const __m128i bytes = _mm_set1_epi32(four_of(four));
    const __m128i activations = _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
    for (int i = 0; i < 4; ++i) {
      const __m128i w = weights.rows[i];
      const __m128i low = _mm_srai_epi16(_mm_unpacklo_epi8(w, w), 8), high = _mm_srai_epi16(_mm_unpackhi_epi8(w, w), 8);
      sums.pairs[2 * i] = _mm_add_epi32(sums.pairs[2 * i], _mm_madd_epi16(low, activations));
      sums.pairs[2 * i + 1] = _mm_add_epi32(sums.pairs[2 * i + 1], _mm_madd_epi16(high, activations));
    }
  }
  static constexpr std::size_t most_groups = groups;
  static void flush(Sums&) {}
  static Column finish(const Sums& sums) {
    Column column;
    for (std::size_t i = 0; i < 4; ++i) {
      const __m128 low = _mm_castsi128_ps(sums.pairs[2 * i]), high = _mm_castsi128_ps(sums.pairs[2 * i + 1]);
      const __m128i even = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)));
      const __m128i odd = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)));
      column.part[i] = _mm_cvtepi32_ps(_mm_add_epi32(even, odd));
    }
    return column;
  }
};
using SignedDot = BiasedDot<0>;

#elif defined(__aarch64__)

struct Group {
  int8x16_t rows[4];
};

inline Group load_group(const void* at) {
  Group group;
  for (int i = 0; i < 4; ++i) group.rows[i] = vld1q_s8(static_cast<const std::int8_t*>(at) + 16 * i);
  return group;
}

// Two sums for each row, of the even and of the odd pairs of columns: rows 2i and 2i + 1 in pairs[i].
struct PairSums {
  int32x4_t pairs[8];
};

template <int bias>
struct BiasedDot {
  using Sums = PairSums;
  static Sums start(std::int32_t sum) {
    Sums sums;
    const std::int32_t both[4] = {-bias * sum, 0, -bias * sum, 0};
    for (int32x4_t& pair : sums.pairs) pair = vld1q_s32(both);
    return sums;
  }
  static void add(Sums& sums, const Group& weights, const std::int8_t* four) {
    const int8x8_t activations = vreinterpret_s8_s32(vdup_n_s32(four_of(four)));
    for (int i = 0; i < 4; ++i) {
      const int8x16_t w = weights.rows[i];
      sums.pairs[2 * i] = vpadalq_s16(sums.pairs[2 * i], vmull_s8(vget_low_s8(w), activations));
      sums.pairs[2 * i + 1] = vpadalq_s16(sums.pairs[2 * i + 1], vmull_s8(vget_high_s8(w), activations));
    }
  }
  static constexpr std::size_t most_groups = groups;
  static void flush(Sums&) {}
  static Column finish(const Sums& sums) {
    Column column;
    for (std::size_t i = 0; i < 4; ++i) {
      column.part[i] = vcvtq_f32_s32(vpaddq_s32(sums.pairs[2 * i], sums.pairs[2 * i + 1]));
    }
    return column;
  }
};
using SignedDot = BiasedDot<0>;

#endif

}  // namespace
}  // namespace minimind::kernels
