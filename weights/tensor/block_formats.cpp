#include "weights/tensor/block_formats.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "weights/io/error.h"
#include "weights/tensor/grid_blocks.h"
#include "weights/tensor/half.h"

namespace minimind {
namespace {

constexpr std::size_t block_size = 32;
using Byte = std::uint8_t;

// A scale whose inverse overflows is 0 as a binary16, so the quants do not matter; 0 keeps them defined.
float inverse_of(float scale) {
  const float inverse = scale == 0 ? 0 : 1.0f / scale;
  return std::isfinite(inverse) ? inverse : 0;
}

void write_scale(F16 scale, Byte* out) {
  std::memcpy(out, &scale, sizeof scale);
}

// Value i is in the low half of byte i, value i + 16 in its high half.
void write_nibbles(const Byte (&quants)[block_size], Byte* out) {
  for (std::size_t i = 0; i < block_size / 2; ++i) {
    out[i] = static_cast<Byte>(quants[i] | quants[i + block_size / 2] << 4);
  }
}

// Returns the value of largest magnitude; of equals, the first.
float extreme_of(const float* values) {
  float highest = values[0], lowest = values[0];
#pragma omp simd reduction(max : highest) reduction(min : lowest)
  for (std::size_t i = 0; i < block_size; ++i) {
    highest = std::max(highest, values[i]);
    lowest = std::min(lowest, values[i]);
  }
  if (highest != -lowest) return highest > -lowest ? highest : lowest;
  return *std::find_if(values, values + block_size, [&](float value) { return std::fabs(value) == highest; });
}

void write_q8_0(const float* values, Byte* out) {
  const float scale = std::fabs(extreme_of(values)) / 127.0f;
  const float inverse = inverse_of(scale);
  write_scale(to_f16(scale), out);
#pragma omp simd
  for (std::size_t i = 0; i < block_size; ++i) {
    // Truncates instead of std::round, which would be a call for each value: the remainder is exact.
    const float scaled = std::clamp(values[i] * inverse, -127.0f, 127.0f);
    const int whole = static_cast<int>(scaled);
    const float rest = scaled - static_cast<float>(whole);
    out[2 + i] = static_cast<Byte>(whole + (rest >= 0.5f) - (rest <= -0.5f));
  }
}

// The value of largest magnitude becomes exactly -8, so its sign is that of the scale.
void write_q4_0(const float* values, Byte* out) {
  const float scale = extreme_of(values) / -8.0f;
  const float inverse = inverse_of(scale);
  write_scale(to_f16(scale), out);
  Byte quants[block_size];
#pragma omp simd
  for (std::size_t i = 0; i < block_size; ++i) {
    quants[i] = static_cast<Byte>(std::clamp(values[i] * inverse + 8.5f, 0.0f, 15.0f));
  }
  write_nibbles(quants, out + 2);
}

// A register of integers of any x86-64 or 64-bit ARM machine. GCC compiles such vectors to faster code than loops with
// 15 comparisons.
constexpr std::size_t lanes = 8;
using Vector = std::int16_t __attribute__((vector_size(lanes * sizeof(std::int16_t))));

// `numbers` are twice the values, rounded down. Returns the sum of step(k) over all k for which the value is not below
// the midpoint between code k and the next code. All midpoints are multiples of 1/2.
template <class Step, std::size_t... k>
Vector sum_of_steps(Vector doubled, Step step, std::index_sequence<k...>) {
  return (((doubled >= std::int16_t{iq4_nl_codes[k] + iq4_nl_codes[k + 1]}) & step(k)) + ...);
}

template <class Step>
void sum_steps(const std::int16_t (&doubled)[block_size], Step step, std::int16_t (&sums)[block_size]) {
  constexpr auto middles = std::make_index_sequence<std::size(iq4_nl_codes) - 1>();
  for (std::size_t i = 0; i < block_size; i += lanes) {
    Vector vector;
    std::memcpy(&vector, doubled + i, sizeof vector);
    vector = sum_of_steps(vector, step, middles);
    std::memcpy(sums + i, &vector, sizeof vector);
  }
}

// Returns the nearest codes, minus the first code.
void find_codes(const std::int16_t (&doubled)[block_size], std::int16_t (&codes)[block_size]) {
  sum_steps(
      doubled, [](std::size_t k) { return static_cast<std::int16_t>(iq4_nl_codes[k + 1] - iq4_nl_codes[k]); }, codes);
}

// Returns the indices of the nearest codes in the code book.
void find_quants(const std::int16_t (&doubled)[block_size], std::int16_t (&quants)[block_size]) {
  sum_steps(
      doubled, [](std::size_t) { return std::int16_t{1}; }, quants);
}

// Trial codes of the value of largest magnitude, around the last codes of either sign: clipping it, or leaving the last
// code unused, can lower the error.
constexpr int tried_extremes[] = {-136, -127, -118, -109, 96, 104, 112, 120};

// Returns the scale of the smallest squared error. Codes are chosen for each trial scale, then the scale for these
// codes. Integer sums do not depend on their order.
float best_iq4_nl_scale(const float* values) {
  constexpr float one = 32767;  // the largest magnitude as a 16-bit number
  const float extreme = extreme_of(values);
  const float inverse = inverse_of(extreme / one);
  std::int16_t numbers[block_size];
#pragma omp simd
  for (std::size_t i = 0; i < block_size; ++i) numbers[i] = static_cast<std::int16_t>(values[i] * inverse);
  double best_gain = 0, best_scale = 0;
  for (const int tried : tried_extremes) {
    std::int16_t doubled[block_size], codes[block_size];
#pragma omp simd
    for (std::size_t i = 0; i < block_size; ++i) doubled[i] = static_cast<std::int16_t>(numbers[i] * (4 * tried) >> 16);
    find_codes(doubled, codes);
    std::int32_t products = 0, squares = 0;
#pragma omp simd reduction(+ : products, squares)
    for (std::size_t i = 0; i < block_size; ++i) {
      const std::int16_t code = static_cast<std::int16_t>(codes[i] + iq4_nl_codes[0]);
      products += numbers[i] * code;
      squares += code * code;
    }
    // |numbers - scale * codes|^2 is smallest at scale = products / squares, and smaller than |numbers|^2 by the gain.
    const double scale = static_cast<double>(products) / squares;
    const double gain = scale * products;
    if (gain > best_gain) {
      best_gain = gain;
      best_scale = scale;
    }
  }
  return static_cast<float>(best_scale * extreme / one);
}

void write_iq4_nl(const float* values, Byte* out) {
  const F16 scale = to_f16(best_iq4_nl_scale(values));
  const float inverse = inverse_of(to_f32(scale));
  write_scale(scale, out);
  std::int16_t doubled[block_size], quants[block_size];
#pragma omp simd
  for (std::size_t i = 0; i < block_size; ++i) {
    constexpr int below_all = -4096;  // conversion truncates, which rounds down from here on
    const float scaled = std::clamp(2 * inverse * values[i], -1000.0f, 1000.0f);
    doubled[i] = static_cast<std::int16_t>(static_cast<int>(scaled - below_all) + below_all);
  }
  find_quants(doubled, quants);
  Byte bytes[block_size];
  std::copy(quants, quants + block_size, bytes);
  write_nibbles(bytes, out + 2);
}

template <void (*write)(const float*, Byte*)>
void write_blocks(DType type, const float* values, std::size_t count, std::byte* out) {
  Byte* block = reinterpret_cast<Byte*>(out);
  for (std::size_t i = 0; i < count; i += block_size, block += block_shape(type).bytes) write(values + i, block);
}

using Byte = std::uint8_t;

// q8_0: scale, 32 signed bytes.
void read_q8_0(const Byte* block, float* out) {
  const float scale = scale_at(block);
  for (std::size_t i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
}

// Returns 32 quants from 16 bytes: value i is in the low half of byte i, value i + 16 in its high half.
void read_nibbles(const Byte* at, Byte (&quants)[32]) {
  for (std::size_t i = 0; i < 16; ++i) {
    quants[i] = at[i] & 0x0F;
    quants[i + 16] = static_cast<Byte>(at[i] >> 4);
  }
}

// Returns 32 quants with a fifth bit each; that of value i is bit i of the 4 bytes before the nibbles.
void read_five_bits(const Byte* at, Byte (&quants)[32]) {
  read_nibbles(at + 4, quants);
  for (std::size_t i = 0; i < 32; ++i) quants[i] = static_cast<Byte>(quants[i] | ((at[i / 8] >> (i % 8)) & 1) << 4);
}

void scale_centred(float scale, const Byte (&quants)[32], int centre, float* out) {
  for (std::size_t i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(quants[i] - centre);
}

void scale_and_add(float scale, const Byte (&quants)[32], float minimum, float* out) {
  for (std::size_t i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(quants[i]) + minimum;
}

// q4_0 and q5_0: scale, quants.
template <void (*read_quants)(const Byte*, Byte (&)[32]), int centre>
void read_centred(const Byte* block, float* out) {
  Byte quants[32];
  read_quants(block + 2, quants);
  scale_centred(scale_at(block), quants, centre, out);
}

// q4_1 and q5_1: scale, minimum, quants.
template <void (*read_quants)(const Byte*, Byte (&)[32])>
void read_above_minimum(const Byte* block, float* out) {
  Byte quants[32];
  read_quants(block + 4, quants);
  scale_and_add(scale_at(block), quants, scale_at(block + 2), out);
}

// iq4_nl: scale, nibbles.
void read_iq4_nl(const Byte* block, float* out) {
  Byte quants[32];
  read_nibbles(block + 2, quants);
  const float scale = scale_at(block);
  for (std::size_t i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(iq4_nl_codes[quants[i]]);
}

// The k-quants: 256 values in parts of 32, whose scales and minima are 6-bit quants of two binary16. These 16 quants
// are in 12 bytes. Those of the first four parts are the low 6 bits of one byte each. Those of the last four parts are
// split: a nibble of the last 4 bytes, and the high 2 bits of the bytes before.
struct PartScale {
  float scale, minimum;
};

PartScale part_scale(const Byte* block, std::size_t part) {
  const Byte* packed = block + 4;
  int scale, minimum;
  if (part < 4) {
    scale = packed[part] & 0x3F;
    minimum = packed[part + 4] & 0x3F;
  } else {
    scale = (packed[part + 4] & 0x0F) | (packed[part - 4] >> 6) << 4;
    minimum = (packed[part + 4] >> 4) | (packed[part] >> 6) << 4;
  }
  return {scale_at(block) * static_cast<float>(scale), scale_at(block + 2) * static_cast<float>(minimum)};
}

// Two parts share 32 bytes: the first part has the low halves.
void read_half_bytes(const Byte* at, std::size_t part, Byte (&quants)[32]) {
  const Byte* bytes = at + part / 2 * 32;
  const int shift = part % 2 == 0 ? 0 : 4;
  for (std::size_t i = 0; i < 32; ++i) quants[i] = static_cast<Byte>((bytes[i] >> shift) & 0x0F);
}

// q4_k: scale of scales, scale of minima, 12 bytes of those, 128 bytes of nibbles.
void read_q4_k(const Byte* block, float* out) {
  for (std::size_t part = 0; part < 8; ++part, out += 32) {
    Byte quants[32];
    read_half_bytes(block + 16, part, quants);
    const PartScale p = part_scale(block, part);
    scale_and_add(p.scale, quants, -p.minimum, out);
  }
}

// q5_k: as q4_k with 32 bytes of fifth bits before the nibbles: bit p of byte i is that of value i of part p.
void read_q5_k(const Byte* block, float* out) {
  for (std::size_t part = 0; part < 8; ++part, out += 32) {
    Byte quants[32];
    read_half_bytes(block + 48, part, quants);
    for (std::size_t i = 0; i < 32; ++i) {
      quants[i] = static_cast<Byte>(quants[i] | ((block[16 + i] >> part) & 1) << 4);
    }
    const PartScale p = part_scale(block, part);
    scale_and_add(p.scale, quants, -p.minimum, out);
  }
}

// Returns value i of 64 bytes of bit pairs: pair p of 32 bytes belongs to part p, of 32 values, of a half of the block.
int bit_pair(const Byte* at, std::size_t i) {
  return (at[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2)) & 3;
}

// q2_k: 16 scales and minima of 16 values each, as low and high nibbles; 64 bytes of bit pairs; scale of scales; scale
// of minima.
void read_q2_k(const Byte* block, float* out) {
  const float scale = scale_at(block + 80), minimum = scale_at(block + 82);
  for (std::size_t i = 0; i < 256; ++i) {
    const Byte packed = block[i / 16];
    const float part_scale = scale * static_cast<float>(packed & 0x0F);
    const float part_minimum = minimum * static_cast<float>(packed >> 4);
    out[i] = part_scale * static_cast<float>(bit_pair(block + 16, i)) - part_minimum;
  }
}

// q3_k: 32 bytes of third bits, where bit p of byte i is that of value i of part p; 64 bytes of bit pairs as in q2_k;
// 16 scales of 6 bits: the low nibbles in 8 bytes, then the high pairs in 4; scale of scales.
void read_q3_k(const Byte* block, float* out) {
  const float scale = scale_at(block + 108);
  const Byte* nibbles = block + 96;
  const Byte* pairs = block + 104;
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t part = i / 16;
    const int low = (nibbles[part % 8] >> (part / 8 * 4)) & 0x0F, high = (pairs[part % 4] >> (part / 4 * 2)) & 3;
    const int third = (block[i % 32] >> (i / 32)) & 1;
    const float part_scale = scale * static_cast<float>((low | high << 4) - 32);
    out[i] = part_scale * static_cast<float>(bit_pair(block + 32, i) - (third ? 0 : 4));
  }
}

// q6_k: 128 bytes of nibbles, 64 bytes of upper bit pairs, 16 signed scales of 16 values each, scale of scales. In each
// half of the block, parts 0 and 1 use the low halves of 64 bytes, parts 2 and 3 the high halves. Part p uses bit pair
// p of 32 bytes.
void read_q6_k(const Byte* block, float* out) {
  const float scale = scale_at(block + 208);
  for (std::size_t part = 0; part < 8; ++part, out += 32) {
    const std::size_t half = part / 4, in_half = part % 4;
    const Byte* nibbles = block + half * 64 + in_half % 2 * 32;
    const Byte* pairs = block + 128 + half * 32;
    const int nibble_shift = in_half < 2 ? 0 : 4, pair_shift = static_cast<int>(2 * in_half);
    float scales[2];
    for (std::size_t i = 0; i < 2; ++i) {
      scales[i] = scale * static_cast<float>(static_cast<std::int8_t>(block[192 + 2 * part + i]));
    }
    for (std::size_t i = 0; i < 32; ++i) {
      const int quant = ((nibbles[i] >> nibble_shift) & 0x0F) | ((pairs[i] >> pair_shift) & 3) << 4;
      out[i] = scales[i / 16] * static_cast<float>(quant - 32);
    }
  }
}

// iq4_xs: scale; the high pairs of 8 scales of 6 bits; their low nibbles; 128 bytes of nibbles, each 16 as in iq4_nl.
void read_iq4_xs(const Byte* block, float* out) {
  const float scale = scale_at(block);
  for (std::size_t part = 0; part < 8; ++part, out += 32) {
    const int low = (block[4 + part / 2] >> (part % 2 * 4)) & 0x0F, high = (block[2 + part / 4] >> (part % 4 * 2)) & 3;
    const float part_scale = scale * static_cast<float>((low | high << 4) - 32);
    Byte quants[32];
    read_nibbles(block + 8 + 16 * part, quants);
    for (std::size_t i = 0; i < 32; ++i) out[i] = part_scale * static_cast<float>(iq4_nl_codes[quants[i]]);
  }
}

// Digits of base 3, for -1, 0 and 1, are encoded as fractions in `count` bytes: multiplying by 3 moves the next digit
// to the front.
float* read_ternary(float scale, const Byte* at, std::size_t count, std::size_t digits, float* out) {
  unsigned power = 1;
  for (std::size_t digit = 0; digit < digits; ++digit, power *= 3) {
    for (std::size_t i = 0; i < count; ++i) {
      const unsigned fraction = (at[i] * power) & 0xFF;
      *out++ = scale * static_cast<float>(static_cast<int>((fraction * 3) >> 8) - 1);
    }
  }
  return out;
}

// tq1_0: 32 and 16 bytes of 5 digits each, 4 bytes of 4, scale.
void read_tq1_0(const Byte* block, float* out) {
  const float scale = scale_at(block + 52);
  out = read_ternary(scale, block, 32, 5, out);
  out = read_ternary(scale, block + 32, 16, 5, out);
  read_ternary(scale, block + 48, 4, 4, out);
}

// tq2_0: bit pairs as in q2_k, scale.
void read_tq2_0(const Byte* block, float* out) {
  const float scale = scale_at(block + 64);
  for (std::size_t i = 0; i < 256; ++i) out[i] = scale * static_cast<float>(bit_pair(block, i) - 1);
}

// Floats of 4 bits, E2M1, times 2.
constexpr std::int8_t e2m1_codes[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// mxfp4: scale as the exponent of a power of two, biased by 128 for the codes' factor of 2; nibbles.
void read_mxfp4(const Byte* block, float* out) {
  const std::uint32_t exponent = block[0];
  const float scale = std::bit_cast<float>(exponent < 2 ? std::uint32_t{0x00200000} << exponent : (exponent - 1) << 23);
  Byte quants[32];
  read_nibbles(block + 1, quants);
  for (std::size_t i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(e2m1_codes[quants[i]]);
}

// A float of 8 bits without a sign, E4M3, over 2 for the codes' factor of 2. 0x7F, its NaN, counts as 0.
float half_e4m3(Byte bits) {
  if (bits == 0x7F) return 0;
  const int exponent = (bits >> 3) & 0x0F;
  const float mantissa = static_cast<float>(bits & 7);
  if (exponent == 0) return mantissa * 0x1p-10f;
  return std::ldexp(1 + mantissa / 8, exponent - 8);
}

// nvfp4: 4 scales of E4M3, 8 bytes of nibbles for each.
void read_nvfp4(const Byte* block, float* out) {
  for (std::size_t part = 0; part < 4; ++part, out += 16) {
    const float scale = half_e4m3(block[part]);
    for (std::size_t i = 0; i < 8; ++i) {
      const Byte packed = block[4 + 8 * part + i];
      out[i] = scale * static_cast<float>(e2m1_codes[packed & 0x0F]);
      out[i + 8] = scale * static_cast<float>(e2m1_codes[packed >> 4]);
    }
  }
}

template <void (*read)(const Byte*, float*)>
void read_blocks(DType type, const std::byte* blocks, std::size_t count, float* out) {
  const BlockShape shape = block_shape(type);
  const Byte* block = reinterpret_cast<const Byte*>(blocks);
  for (std::size_t i = 0; i < count; i += shape.elements, block += shape.bytes) read(block, out + i);
}

}  // namespace

// The least squares of iq4_nl cannot require a scale above largest / 77.
float scale_divisor(DType type) {
  return type == DType::q8_0 ? 127.0f : type == DType::q4_0 ? 8.0f : 64.0f;
}

void quantize(DType type, const float* values, std::size_t count, std::byte* out) {
  switch (type) {
    case DType::q8_0:
      return write_blocks<write_q8_0>(type, values, count, out);
    case DType::q4_0:
      return write_blocks<write_q4_0>(type, values, count, out);
    case DType::iq4_nl:
      return write_blocks<write_iq4_nl>(type, values, count, out);
    default:
      throw Error(fmt::format("{} cannot be written", name_of(type)));
  }
}

void dequantize(DType type, const std::byte* blocks, std::size_t count, float* out) {
  switch (type) {
    case DType::q8_0:
      return read_blocks<read_q8_0>(type, blocks, count, out);
    case DType::q4_0:
      return read_blocks<read_centred<read_nibbles, 8>>(type, blocks, count, out);
    case DType::q4_1:
      return read_blocks<read_above_minimum<read_nibbles>>(type, blocks, count, out);
    case DType::q5_0:
      return read_blocks<read_centred<read_five_bits, 16>>(type, blocks, count, out);
    case DType::q5_1:
      return read_blocks<read_above_minimum<read_five_bits>>(type, blocks, count, out);
    case DType::q4_k:
      return read_blocks<read_q4_k>(type, blocks, count, out);
    case DType::q5_k:
      return read_blocks<read_q5_k>(type, blocks, count, out);
    case DType::q6_k:
      return read_blocks<read_q6_k>(type, blocks, count, out);
    case DType::iq4_nl:
      return read_blocks<read_iq4_nl>(type, blocks, count, out);
    case DType::q2_k:
      return read_blocks<read_q2_k>(type, blocks, count, out);
    case DType::q3_k:
      return read_blocks<read_q3_k>(type, blocks, count, out);
    case DType::iq4_xs:
      return read_blocks<read_iq4_xs>(type, blocks, count, out);
    case DType::iq3_s:
      return read_blocks<read_iq3_s>(type, blocks, count, out);
    case DType::iq3_xxs:
      return read_blocks<read_iq3_xxs>(type, blocks, count, out);
    case DType::iq2_s:
      return read_blocks<read_iq2_s>(type, blocks, count, out);
    case DType::iq2_xs:
      return read_blocks<read_iq2_xs>(type, blocks, count, out);
    case DType::iq2_xxs:
      return read_blocks<read_iq2_xxs>(type, blocks, count, out);
    case DType::iq1_m:
      return read_blocks<read_iq1_m>(type, blocks, count, out);
    case DType::iq1_s:
      return read_blocks<read_iq1_s>(type, blocks, count, out);
    case DType::tq1_0:
      return read_blocks<read_tq1_0>(type, blocks, count, out);
    case DType::tq2_0:
      return read_blocks<read_tq2_0>(type, blocks, count, out);
    case DType::mxfp4:
      return read_blocks<read_mxfp4>(type, blocks, count, out);
    case DType::nvfp4:
      return read_blocks<read_nvfp4>(type, blocks, count, out);
    default:
      throw Error(fmt::format("{} is not a block type", name_of(type)));
  }
}

}  // namespace minimind
