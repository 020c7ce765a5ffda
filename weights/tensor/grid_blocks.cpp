#include "weights/tensor/grid_blocks.h"

#include <bit>
#include <cstddef>
#include <cstring>

#include "weights/tensor/block_grids.h"
#include "weights/tensor/dtype.h"
#include "weights/tensor/half.h"

// The layouts are those of ggml-common.h. Blocks consist of vectors of 8 or 4 values from a code book.

namespace minimind {
namespace {

using Byte = std::uint8_t;

constexpr float iq2_codes[4] = {8, 25, 43, 0};  // no code book uses the last
constexpr float iq3_xxs_codes[8] = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr float iq3_s_codes[8] = {1, 3, 5, 7, 9, 11, 13, 15};

template <class Number>
Number number_at(const Byte* at) {
  Number number;
  std::memcpy(&number, at, sizeof number);
  return number;
}

unsigned nibble(const Byte* at, std::size_t i) {
  return (at[i / 2] >> (i % 2 * 4)) & 0x0Fu;
}

// Four vectors of 8 values store their signs as 7 bits each; the eighth makes the number of minus signs even.
Byte signs_of(std::uint32_t packed, std::size_t vector) {
  const unsigned seven = (packed >> (7 * vector)) & 0x7Fu;
  return static_cast<Byte>(seven | static_cast<unsigned>(std::popcount(seven) % 2) << 7);
}

// `size` values of a vector whose codes have `bits` bits; bit i of `signs` makes value i negative.
template <std::size_t size, std::size_t bits, std::size_t count>
void put_signed(float scale, unsigned point, const float (&codes)[count], unsigned signs, float* out) {
  for (std::size_t i = 0; i < size; ++i) {
    const float magnitude = scale * codes[(point >> (bits * i)) & (count - 1)];
    out[i] = (signs >> i) & 1 ? -magnitude : magnitude;
  }
}

// The types of about 1 bit add an eighth to every code or subtract an eighth.
void put_shifted(float scale, unsigned point, bool down, float* out) {
  constexpr float codes[4] = {-1, 0, 1, 0};
  const float shift = down ? -0.125f : 0.125f;
  for (std::size_t i = 0; i < 8; ++i) out[i] = scale * (codes[(point >> (2 * i)) & 3] + shift);
}

}  // namespace

// Scale; per 32 values, 4 indices, and 32 bits of signs and, highest, a 4-bit scale.
void read_iq2_xxs(const Byte* block, float* out) {
  const float scale = scale_at(block);
  for (std::size_t part = 0; part < 8; ++part) {
    const Byte* places = block + 2 + 8 * part;
    const auto packed = number_at<std::uint32_t>(places + 4);
    const float part_scale = scale * (0.5f + static_cast<float>(packed >> 28)) * 0.25f;
    for (std::size_t i = 0; i < 4; ++i, out += 8) {
      put_signed<8, 2>(part_scale, iq2_xxs_grid[places[i]], iq2_codes, signs_of(packed, i), out);
    }
  }
}

// Scale, 32 times a 9-bit index and 7 sign bits, a 4-bit scale per 2 vectors.
void read_iq2_xs(const Byte* block, float* out) {
  const float scale = scale_at(block);
  for (std::size_t vector = 0; vector < 32; ++vector, out += 8) {
    const auto packed = number_at<std::uint16_t>(block + 2 + 2 * vector);
    const float part_scale = scale * (0.5f + static_cast<float>(nibble(block + 66, vector / 2))) * 0.25f;
    put_signed<8, 2>(part_scale, iq2_xs_grid[packed & 511u], iq2_codes, signs_of(packed >> 9, 0), out);
  }
}

// Scale, the low 8 bits of 32 indices, 32 bytes of signs, the high 2 bits of the indices, a 4-bit scale per 2 vectors.
void read_iq2_s(const Byte* block, float* out) {
  const float scale = scale_at(block);
  for (std::size_t vector = 0; vector < 32; ++vector, out += 8) {
    const unsigned high = (block[66 + vector / 4] >> (vector % 4 * 2)) & 3u;
    const float part_scale = scale * (0.5f + static_cast<float>(nibble(block + 74, vector / 2))) * 0.25f;
    put_signed<8, 2>(part_scale, iq2_s_grid[block[2 + vector] | high << 8], iq2_codes, block[34 + vector], out);
  }
}

// Scale, 64 indices of vectors of 4; per 32 values, 32 bits of signs and, highest, a 4-bit scale.
void read_iq3_xxs(const Byte* block, float* out) {
  const float scale = scale_at(block);
  for (std::size_t part = 0; part < 8; ++part) {
    const auto packed = number_at<std::uint32_t>(block + 66 + 4 * part);
    const float part_scale = scale * (0.5f + static_cast<float>(packed >> 28)) * 0.5f;
    for (std::size_t i = 0; i < 8; ++i, out += 4) {
      const unsigned signs = signs_of(packed, i / 2) >> (i % 2 * 4);
      put_signed<4, 3>(part_scale, iq3_xxs_grid[block[2 + 8 * part + i]], iq3_xxs_codes, signs, out);
    }
  }
}

// Scale, the low 8 bits of 64 indices of vectors of 4, their ninth bits, 32 bytes of signs, a 4-bit scale per 32
// values.
void read_iq3_s(const Byte* block, float* out) {
  const float scale = scale_at(block);
  for (std::size_t vector = 0; vector < 64; ++vector, out += 4) {
    const unsigned high = (block[66 + vector / 8] >> (vector % 8)) & 1u;
    const unsigned signs = block[74 + vector / 2] >> (vector % 2 * 4);
    const float part_scale = scale * static_cast<float>(1 + 2 * nibble(block + 106, vector / 8));
    put_signed<4, 3>(part_scale, iq3_s_grid[block[2 + vector] | high << 8], iq3_s_codes, signs, out);
  }
}

// Scale, the low 8 bits of 32 indices; per 4 vectors, 16 bits: the high 3 bits of each index, a 3-bit scale, and the
// direction of the shift.
void read_iq1_s(const Byte* block, float* out) {
  const float scale = scale_at(block);
  for (std::size_t vector = 0; vector < 32; ++vector, out += 8) {
    const unsigned packed = number_at<std::uint16_t>(block + 34 + vector / 4 * 2);
    const unsigned high = (packed >> (vector % 4 * 3)) & 7u;
    const float part_scale = scale * static_cast<float>(2 * ((packed >> 12) & 7u) + 1);
    put_shifted(part_scale, iq1_grid[block[2 + vector] | high << 8], (packed & 0x8000u) != 0, out);
  }
}

// The low 8 bits of 32 indices; per index 4 bits: its high 3 bits and the direction of its shift; four times 16 bits:
// four 3-bit scales of 2 vectors each and, highest, a nibble of the block's scale.
void read_iq1_m(const Byte* block, float* out) {
  unsigned scale_bits = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    scale_bits |= static_cast<unsigned>(number_at<std::uint16_t>(block + 48 + 2 * i) >> 12) << (4 * i);
  }
  const float scale = to_f32(F16{static_cast<std::uint16_t>(scale_bits)});
  for (std::size_t vector = 0; vector < 32; ++vector, out += 8) {
    const unsigned packed = number_at<std::uint16_t>(block + 48 + vector / 8 * 2);
    const float part_scale = scale * static_cast<float>(2 * ((packed >> (vector / 2 % 4 * 3)) & 7u) + 1);
    const unsigned high = nibble(block + 32, vector);
    put_shifted(part_scale, iq1_grid[block[vector] | (high & 7u) << 8], (high & 8u) != 0, out);
  }
}

}  // namespace minimind
