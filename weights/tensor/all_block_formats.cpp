#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <optional>

#include "weights/tensor/block_codes.h"
#include "weights/tensor/block_formats.h"
#include "weights/tensor/choose_codes.h"
#include "weights/tensor/grid_blocks.h"

namespace minimind {
namespace {

using Byte = std::uint8_t;

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

// Floats of 4 bits, E2M1, times 2.
constexpr std::int8_t e2m1_codes[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Two in a byte: value i is in the low half of byte i, value i + count in its high half.
void read_e2m1(float scale, const Byte* at, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = scale * static_cast<float>(e2m1_codes[at[i] & 0x0F]);
    out[i + count] = scale * static_cast<float>(e2m1_codes[at[i] >> 4]);
  }
}

// mxfp4: scale as the exponent of a power of two, biased by 128 for the codes' factor of 2; nibbles.
void read_mxfp4(const Byte* block, float* out) {
  const std::uint32_t exponent = block[0];
  const float scale = std::bit_cast<float>(exponent < 2 ? std::uint32_t{0x00200000} << exponent : (exponent - 1) << 23);
  read_e2m1(scale, block + 1, 16, out);
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
    read_e2m1(half_e4m3(block[part]), block + 4 + 8 * part, 8, out);
  }
}

// The types whose blocks are not BlockCodes. They are only read.
struct OnlyRead {
  DType type;
  void (*read)(const Byte* block, float* out);
};
constexpr OnlyRead only_read[] = {
    {DType::iq3_s, read_iq3_s},   {DType::iq3_xxs, read_iq3_xxs}, {DType::iq2_s, read_iq2_s},
    {DType::iq2_xs, read_iq2_xs}, {DType::iq2_xxs, read_iq2_xxs}, {DType::iq1_m, read_iq1_m},
    {DType::iq1_s, read_iq1_s},   {DType::tq1_0, read_tq1_0},     {DType::mxfp4, read_mxfp4},
    {DType::nvfp4, read_nvfp4},
};

const OnlyRead* find_only_read(DType type) {
  const auto* const found = std::ranges::find(only_read, type, &OnlyRead::type);
  return found == std::end(only_read) ? nullptr : found;
}

void read_blocks(DType type, const std::byte* blocks, std::size_t count, float* out) {
  const auto read = find_only_read(type)->read;
  const BlockShape shape = block_shape(type);
  const Byte* block = reinterpret_cast<const Byte*>(blocks);
  for (std::size_t i = 0; i < count; i += shape.elements, block += shape.bytes) read(block, out + i);
}

void write_codes(DType type, const float* values, std::size_t count, std::byte* out) {
  const auto choose = find_code_chooser(type)->choose;
  const BlockShape shape = block_shape(type);
  BlockCodes codes;
  for (std::size_t i = 0; i < count; i += shape.elements, out += shape.bytes) {
    choose(values + i, codes);
    pack_block(type, codes, out);
  }
}

}  // namespace

std::optional<BlockFormat> more_block_format(DType type) {
  if (has_block_codes(type)) {
    const CodeChooser* const chooser = find_code_chooser(type);
    return chooser ? BlockFormat{read_codes, write_codes, chooser->scale_divisor, chooser->shorter}
                   : BlockFormat{read_codes};
  }
  return find_only_read(type) ? std::optional(BlockFormat{read_blocks}) : std::nullopt;
}

}  // namespace minimind
