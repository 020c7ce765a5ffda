#include <fmt/core.h>

#include <cstring>

#include "weights/error.h"
#include "weights/quantize.h"

// The layouts are those of ggml-common.h. All scales are binary16, little-endian.

namespace minimind {
namespace {

using Byte = std::uint8_t;

float scale_at(const Byte* at) {
  F16 scale;
  std::memcpy(&scale, at, sizeof scale);
  return to_f32(scale);
}

// q8_0: scale, 32 signed bytes.
void read_q8_0(const Byte* block, float* out) {
  const float scale = scale_at(block);
  for (std::size_t i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
}

// The 32 quants of 16 bytes: number i in the low half of byte i, number i + 16 in its high half.
void read_nibbles(const Byte* at, Byte (&quants)[32]) {
  for (std::size_t i = 0; i < 16; ++i) {
    quants[i] = at[i] & 0x0F;
    quants[i + 16] = static_cast<Byte>(at[i] >> 4);
  }
}

// The same with a fifth bit each, number i's in bit i of the 4 bytes before.
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

// q4_0: scale, nibbles.
void read_q4_0(const Byte* block, float* out) {
  Byte quants[32];
  read_nibbles(block + 2, quants);
  scale_centred(scale_at(block), quants, 8, out);
}

// q4_1: scale, minimum, nibbles.
void read_q4_1(const Byte* block, float* out) {
  Byte quants[32];
  read_nibbles(block + 4, quants);
  scale_and_add(scale_at(block), quants, scale_at(block + 2), out);
}

// q5_0: scale, fifth bits, nibbles.
void read_q5_0(const Byte* block, float* out) {
  Byte quants[32];
  read_five_bits(block + 2, quants);
  scale_centred(scale_at(block), quants, 16, out);
}

// q5_1: scale, minimum, fifth bits, nibbles.
void read_q5_1(const Byte* block, float* out) {
  Byte quants[32];
  read_five_bits(block + 4, quants);
  scale_and_add(scale_at(block), quants, scale_at(block + 2), out);
}

// iq4_nl: scale, nibbles.
void read_iq4_nl(const Byte* block, float* out) {
  Byte quants[32];
  read_nibbles(block + 2, quants);
  const float scale = scale_at(block);
  for (std::size_t i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(iq4_nl_codes[quants[i]]);
}

// The k-quants: 256 numbers in parts of 32, whose scales and minima are themselves 6-bit quants of two binary16. Their
// 16 numbers lie in 12 bytes: of the first four parts in the low 6 bits of a byte each, of the last four half as a
// nibble of the last 4 bytes and half in the high 2 bits of the bytes before.
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

// Two parts share 32 bytes: the first has the low halves.
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

// q5_k: as q4_k with 32 bytes of fifth bits before the nibbles: bit p of byte i is number i's of part p.
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

// q6_k: 128 bytes of nibbles, 64 bytes of upper bit pairs, 16 signed scales of 16 numbers each, scale of scales. Of
// each half of the block, parts 0 and 1 have the low halves of 64 bytes, parts 2 and 3 the high ones, and part p bit
// pair p of 32 bytes.
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

template <void (*read)(const Byte*, float*)>
void read_blocks(DType type, const std::byte* blocks, std::size_t count, float* out) {
  const BlockShape shape = block_shape(type);
  const Byte* block = reinterpret_cast<const Byte*>(blocks);
  for (std::size_t i = 0; i < count; i += shape.elements, block += shape.bytes) read(block, out + i);
}

}  // namespace

void dequantize(DType type, const std::byte* blocks, std::size_t count, float* out) {
  switch (type) {
    case DType::q8_0:
      return read_blocks<read_q8_0>(type, blocks, count, out);
    case DType::q4_0:
      return read_blocks<read_q4_0>(type, blocks, count, out);
    case DType::q4_1:
      return read_blocks<read_q4_1>(type, blocks, count, out);
    case DType::q5_0:
      return read_blocks<read_q5_0>(type, blocks, count, out);
    case DType::q5_1:
      return read_blocks<read_q5_1>(type, blocks, count, out);
    case DType::q4_k:
      return read_blocks<read_q4_k>(type, blocks, count, out);
    case DType::q5_k:
      return read_blocks<read_q5_k>(type, blocks, count, out);
    case DType::q6_k:
      return read_blocks<read_q6_k>(type, blocks, count, out);
    case DType::iq4_nl:
      return read_blocks<read_iq4_nl>(type, blocks, count, out);
    default:
      throw Error(fmt::format("{} is no block type", name_of(type)));
  }
}

}  // namespace minimind
