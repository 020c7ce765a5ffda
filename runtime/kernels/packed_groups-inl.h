#pragma once

// Included by the products of block types other than q8_0 only: weights of fewer than 8 bits, for each instruction set.
// Of the kinds of dot products, as int8_dot-inl.h has them, UnsignedDot<bits, bias> takes unsigned quants of `bits`
// bits, at most 6, which represent quant - bias; CodeDot takes results of look_up(). StripDot, with another start(),
// takes the weights of strips. BlockWeights are those of blocks of nibbles.

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "runtime/kernels/block_matmul-inl.h"
#include "runtime/kernels/blocks.h"
#include "runtime/kernels/int8_dot-inl.h"
#include "weights/tensor/dtype.h"

namespace minimind::kernels {
namespace {

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
constexpr bool unsigned_weights = true;
using CodeDot = BiasedDot<128>;
#else
constexpr bool unsigned_weights = false;
using CodeDot = SignedDot;
#endif

#if defined(__AVX2__)
// Returns the codes as CodeDot takes them.
inline __m128i load_codes(const std::int8_t (&codes)[16]) {
  const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
  return unsigned_weights ? _mm_xor_si128(table, _mm_set1_epi8(-128)) : table;
}
#endif

#if defined(__AVX512VNNI__)

inline void store_group(Group group, void* at) {
  _mm512_storeu_si512(at, group);
}

// Calls use(register, ...) for the registers of the groups.
template <class Use, class... Groups>
inline void for_registers(const Use& use, Groups&... registers) {
  use(registers...);
}

template <bool high>
inline Group load_nibbles(const void* at) {
  const Group bytes = load_group(at);
  return _mm512_and_si512(high ? _mm512_srli_epi16(bytes, 4) : bytes, _mm512_set1_epi8(0x0F));
}

inline Group look_up(const std::int8_t (&codes)[16], Group nibbles) {
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(load_codes(codes)), nibbles);
}

inline RowSums products_of_pairs(std::int32_t a, std::int32_t b) {
  return {_mm512_madd_epi16(_mm512_set1_epi32(a), _mm512_set1_epi32(b))};
}

#elif defined(__AVX2__)

inline void store_group(const Group& group, void* at) {
  __m256i* bytes = static_cast<__m256i*>(at);
  _mm256_storeu_si256(bytes, group.rows[0]);
  _mm256_storeu_si256(bytes + 1, group.rows[1]);
}

template <bool high>
inline Group load_nibbles(const void* at) {
  Group group = load_group(at);
  for (__m256i& bytes : group.rows) {
    bytes = _mm256_and_si256(high ? _mm256_srli_epi16(bytes, 4) : bytes, _mm256_set1_epi8(0x0F));
  }
  return group;
}

inline Group look_up(const std::int8_t (&codes)[16], Group nibbles) {
  const __m256i table = _mm256_broadcastsi128_si256(load_codes(codes));
  return {{_mm256_shuffle_epi8(table, nibbles.rows[0]), _mm256_shuffle_epi8(table, nibbles.rows[1])}};
}

#if defined(__AVXVNNI__)
inline RowSums products_of_pairs(std::int32_t a, std::int32_t b) {
  const __m256i sums = _mm256_madd_epi16(_mm256_set1_epi32(a), _mm256_set1_epi32(b));
  return {{sums, sums}};
}
#else
// A sum of 16 bits takes two products of each group.
template <int bits, int bias>
struct UnsignedDot {
  struct Sums {
    RowSums pairs;   // 16 bits each
    RowSums totals;  // of the pairs before the last flush
    std::int32_t sum;
    void pin() { pairs.pin(); }
  };
  static constexpr std::size_t most_groups = 32767 / (2 * ((1 << bits) - 1) * 127);
  static_assert(most_groups > 0, "a sum of 16 bits cannot hold two products of quants of more than 7 bits");
  static Sums start(std::int32_t sum) { return {RowSums::all(0), RowSums::all(0), sum}; }
  static void add(Sums& sums, const Group& weights, const std::int8_t* four) {
    const __m256i activations = _mm256_set1_epi32(four_of(four));
    for (int i = 0; i < 2; ++i) {
      sums.pairs.rows[i] = _mm256_add_epi16(sums.pairs.rows[i], _mm256_maddubs_epi16(weights.rows[i], activations));
    }
  }
  static void flush(Sums& sums) {
    for (int i = 0; i < 2; ++i) {
      sums.totals.rows[i] =
          _mm256_add_epi32(sums.totals.rows[i], _mm256_madd_epi16(sums.pairs.rows[i], _mm256_set1_epi16(1)));
    }
    sums.pairs = RowSums::all(0);
  }
  static Column finish(Sums sums) {
    flush(sums);
    const __m256i of_bias = _mm256_set1_epi32(bias * sums.sum);
    for (__m256i& total : sums.totals.rows) total = _mm256_sub_epi32(total, of_bias);
    return sums.totals.to_floats();
  }
};
#endif

#elif defined(__SSE2__)

inline void store_group(const Group& group, void* at) {
  for (int i = 0; i < 4; ++i) _mm_storeu_si128(static_cast<__m128i*>(at) + i, group.rows[i]);
}

template <bool high>
inline Group load_nibbles(const void* at) {
  Group group = load_group(at);
  for (__m128i& bytes : group.rows) {
    bytes = _mm_and_si128(high ? _mm_srli_epi16(bytes, 4) : bytes, _mm_set1_epi8(0x0F));
  }
  return group;
}

// SSE2 has no shuffle of bytes by bytes, so the differences between successive codes are added: faster than a table in
// memory.
inline Group look_up(const std::int8_t (&codes)[16], Group nibbles) {
  for (__m128i& bytes : nibbles.rows) {
    __m128i values = _mm_set1_epi8(codes[0]);
    for (int k = 1; k < 16; ++k) {
      const __m128i step = _mm_set1_epi8(static_cast<char>(codes[k] - codes[k - 1]));
      const __m128i reached = _mm_cmpgt_epi8(bytes, _mm_set1_epi8(static_cast<char>(k - 1)));
      values = _mm_add_epi8(values, _mm_and_si128(reached, step));
    }
    bytes = values;
  }
  return nibbles;
}

#elif defined(__aarch64__)

inline void store_group(const Group& group, void* at) {
  for (int i = 0; i < 4; ++i) vst1q_s8(static_cast<std::int8_t*>(at) + 16 * i, group.rows[i]);
}

template <bool high>
inline Group load_nibbles(const void* at) {
  Group group;
  for (int i = 0; i < 4; ++i) {
    const uint8x16_t bytes = vld1q_u8(static_cast<const std::uint8_t*>(at) + 16 * i);
    group.rows[i] = vreinterpretq_s8_u8(high ? vshrq_n_u8(bytes, 4) : vandq_u8(bytes, vdupq_n_u8(0x0F)));
  }
  return group;
}

inline Group look_up(const std::int8_t (&codes)[16], Group nibbles) {
  const int8x16_t table = vld1q_s8(codes);
  for (int8x16_t& bytes : nibbles.rows) bytes = vqtbl1q_s8(table, vreinterpretq_u8_s8(bytes));
  return nibbles;
}

#endif

#if !defined(__AVX2__) || defined(__AVX512VNNI__) || defined(__AVXVNNI__)
template <int bits, int bias>
using UnsignedDot = BiasedDot<bias>;
#endif

struct StripDot : CodeDot {
  // `factors`, two of 16 bits, of the sum of the activations and that of the first half: minus the bias, or 0.
  static Sums start([[maybe_unused]] const ActivationBlock& x, [[maybe_unused]] std::int32_t factors) {
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
    std::int32_t both;
    __builtin_memcpy(&both, &x.sum, sizeof both);
    return products_of_pairs(both, factors);
#else
    return RowSums::all(0);
#endif
  }
};

#if !defined(__AVX512VNNI__)
// Calls use(register, ...) for each register of the first group and those at its place in the others.
template <class Use, class... Groups>
inline void for_registers(const Use& use, Group& first, Groups&... others) {
  for (std::size_t i = 0; i < std::size(first.rows); ++i) use(first.rows[i], others.rows[i]...);
}
#endif

// 16 signed bytes, of any instruction set.
typedef std::int8_t Bytes __attribute__((vector_size(panel_rows)));

inline Bytes load_bytes(const void* at) {
  Bytes bytes;
  __builtin_memcpy(&bytes, at, sizeof bytes);
  return bytes;
}

inline Column to_floats(Bytes bytes) {
#if defined(__AVX512F__)
  return {{_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32((__m128i)bytes))}};
#elif defined(__AVX2__)
  const __m128i low = (__m128i)bytes, high = _mm_unpackhi_epi64(low, low);
  return {{_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(low)), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(high))}};
#elif defined(__SSE2__)
  const __m128i all = (__m128i)bytes, low = _mm_unpacklo_epi8(all, all), high = _mm_unpackhi_epi8(all, all);
  const auto widen = [](__m128i four_times) { return _mm_cvtepi32_ps(_mm_srai_epi32(four_times, 24)); };
  return {{widen(_mm_unpacklo_epi16(low, low)), widen(_mm_unpackhi_epi16(low, low)),
           widen(_mm_unpacklo_epi16(high, high)), widen(_mm_unpackhi_epi16(high, high))}};
#elif defined(__aarch64__)
  const int16x8_t low = vmovl_s8(vget_low_s8((int8x16_t)bytes)), high = vmovl_s8(vget_high_s8((int8x16_t)bytes));
  return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(low))),
           vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(high)))}};
#endif
}

inline Group load_nibbles(const NibbleBlock& block, std::size_t group) {
  return group < groups / 2 ? load_nibbles<false>(block.nibbles[group])
                            : load_nibbles<true>(block.nibbles[group - groups / 2]);
}

template <>
struct BlockWeights<Q4Block> {
  using Dot = UnsignedDot<4, 8>;
  static constexpr bool is_packed = true;
  static Group load(const Q4Block& block, std::size_t group) { return load_nibbles(block, group); }
};
template <>
struct BlockWeights<Iq4NlBlock> {
  using Dot = CodeDot;
  static constexpr bool is_packed = true;
  static Group load(const Iq4NlBlock& block, std::size_t group) {
    return look_up(iq4_nl_codes, load_nibbles(block, group));
  }
};

}  // namespace
}  // namespace minimind::kernels
