#include "runtime/engine/block_rows.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "runtime/engine/stored_type.h"
#include "weights/tensor/block_codes.h"
#include "weights/tensor/dtype.h"
#include "weights/tensor/half.h"
#include "weights/tensor/stored_numbers.h"

namespace minimind {
namespace {

using kernels::block_cols;
using kernels::group_cols;
using kernels::Iq4NlBlock;
using kernels::NibbleBlock;
using kernels::PartBlock;
using kernels::Q4Block;
using kernels::Q8Block;

// The index of each code of iq4_nl, at the code as an unsigned byte.
constexpr std::array<std::uint8_t, 256> code_indices = [] {
  std::array<std::uint8_t, 256> indices{};
  for (std::size_t i = 0; i < std::size(iq4_nl_codes); ++i) {
    indices[static_cast<std::uint8_t>(iq4_nl_codes[i])] = static_cast<std::uint8_t>(i);
  }
  return indices;
}();

template <PartBlock Block>
unsigned quant_of(std::int8_t code) {
  if constexpr (kernels::HasCodes<Block>) {
    return code_indices[static_cast<std::uint8_t>(code)];
  } else {
    return static_cast<unsigned>(code + Block::centre);
  }
}

template <PartBlock Block>
std::int8_t code_of(unsigned quant) {
  if constexpr (kernels::HasCodes<Block>) {
    return iq4_nl_codes[quant];
  } else {
    return static_cast<std::int8_t>(static_cast<int>(quant) - Block::centre);
  }
}

// Calls use(byte, column, shift) for each byte of a plane's row and each of the columns that have bits in it.
template <std::size_t bits, class Plane, class Use>
void for_columns(Plane& plane, std::size_t row, const Use& use) {
  constexpr std::size_t groups_per_byte = 8 / bits;
  for (std::size_t vector = 0; vector < bits; ++vector) {
    for (std::size_t i = 0; i < groups_per_byte; ++i) {
      for (std::size_t col = 0; col < group_cols; ++col) {
        const std::size_t group = vector * groups_per_byte + i;
        use(plane.bytes[vector][row][col], group * group_cols + col, i * bits);
      }
    }
  }
}

// Bits `from` and up of the quants of 32 columns.
template <std::size_t bits>
void put_plane(const std::uint8_t (&quants)[block_cols], std::size_t from, std::size_t row,
               kernels::BitPlane<bits>& plane) {
  for_columns<bits>(plane, row, [&](std::uint8_t& byte, std::size_t col, std::size_t shift) {
    const unsigned part = (quants[col] >> from & ((1u << bits) - 1)) << shift;
    byte = static_cast<std::uint8_t>(shift == 0 ? part : byte | part);
  });
}

template <std::size_t bits>
void add_plane(const kernels::BitPlane<bits>& plane, std::size_t row, std::size_t to,
               std::uint8_t (&quants)[block_cols]) {
  for_columns<bits>(plane, row, [&](std::uint8_t byte, std::size_t col, std::size_t shift) {
    quants[col] = static_cast<std::uint8_t>(quants[col] | (byte >> shift & ((1u << bits) - 1)) << to);
  });
}

template <std::size_t low_bits, std::size_t high_bits>
void put_quants(const std::uint8_t (&quants)[block_cols], std::size_t row,
                kernels::PlaneQuants<low_bits, high_bits>& out) {
  put_plane(quants, 0, row, out.low);
  if constexpr (high_bits > 0) put_plane(quants, low_bits, row, out.high);
}

template <std::size_t low_bits, std::size_t high_bits>
void read_quants(const kernels::PlaneQuants<low_bits, high_bits>& planes, std::size_t row,
                 std::uint8_t (&quants)[block_cols]) {
  std::fill(std::begin(quants), std::end(quants), std::uint8_t{0});
  add_plane(planes.low, row, 0, quants);
  if constexpr (high_bits > 0) add_plane(planes.high, row, low_bits, quants);
}

template <PartBlock Block>
constexpr std::size_t part_count = kernels::blocks_of_32<Block>* kernels::parts_of_32<Block>;

// Computes 32 values from the codes of both halves of a row's nibbles.
template <class CodeOf>
void read_nibbles(const NibbleBlock& block, std::size_t row, const CodeOf& code, float* out) {
  constexpr std::size_t half = block_cols / 2;
  const float scale = to_f32(F16{block.scale[row]});
  for (std::size_t col = 0; col < half; ++col) {
    const std::uint8_t both = block.nibbles[col / group_cols][row][col % group_cols];
    out[col] = scale * static_cast<float>(code(both & 0x0F));
    out[col + half] = scale * static_cast<float>(code(both >> 4));
  }
}

}  // namespace

void put_block(const std::byte* stored, std::size_t row, Q8Block& out) {
  out.scale[row] = load_element<std::uint16_t>(stored, 0);
  stored += sizeof out.scale[row];
  for (std::size_t group = 0; group < block_cols / group_cols; ++group) {
    std::memcpy(out.quant[group][row], stored + group * group_cols, group_cols);
  }
}

void put_block(const std::byte* stored, std::size_t row, NibbleBlock& out) {
  out.scale[row] = load_element<std::uint16_t>(stored, 0);
  stored += sizeof out.scale[row];
  for (std::size_t group = 0; group < block_cols / group_cols / 2; ++group) {
    std::memcpy(out.nibbles[group][row], stored + group * group_cols, group_cols);
  }
}

void read_block(const Q8Block& block, std::size_t row, float* out) {
  const float scale = to_f32(F16{block.scale[row]});
  for (std::size_t col = 0; col < block_cols; ++col) {
    out[col] = scale * static_cast<float>(block.quant[col / group_cols][row][col % group_cols]);
  }
}

void read_block(const Q4Block& block, std::size_t row, float* out) {
  read_nibbles(
      block, row, [](int nibble) { return nibble - 8; }, out);
}

void read_block(const Iq4NlBlock& block, std::size_t row, float* out) {
  read_nibbles(
      block, row, [](int nibble) { return iq4_nl_codes[nibble]; }, out);
}

template <PartBlock Block>
void put_block(const std::byte* stored, std::size_t row, Block& out) {
  BlockCodes codes;
  unpack_block(stored_type<Block>, stored, codes);
  out.scale[row] = codes.scale.bits;
  if constexpr (kernels::HasMinima<Block>) out.minimum[row] = codes.minimum.bits;
  for (std::size_t p = 0; p < part_count<Block>; ++p) {
    if constexpr (kernels::HasScalesOfParts<Block>) out.part_scale[p][row] = codes.part_scales[p];
    if constexpr (kernels::HasMinimaOfParts<Block>) {
      out.part_minimum[p][row] = static_cast<std::int8_t>(codes.part_minima[p]);
    }
    if constexpr (kernels::HasNibblesOfParts<Block>) {
      out.part_scale_and_minimum[p][row] = static_cast<std::uint8_t>(codes.part_scales[p] | codes.part_minima[p] << 4);
    }
  }
  for (std::size_t i = 0; i < kernels::blocks_of_32<Block>; ++i) {
    std::uint8_t quants[block_cols];
    for (std::size_t col = 0; col < block_cols; ++col) {
      quants[col] = static_cast<std::uint8_t>(quant_of<Block>(codes.codes[i * block_cols + col]));
    }
    put_quants(quants, row, out.quants[i]);
  }
}

template <PartBlock Block>
void read_block(const Block& block, std::size_t row, float* out) {
  BlockCodes codes;
  codes.scale = {block.scale[row]};
  codes.minimum = {};
  if constexpr (kernels::HasMinima<Block>) codes.minimum = {block.minimum[row]};
  for (std::size_t p = 0; p < part_count<Block>; ++p) {
    codes.part_scales[p] = 1;
    codes.part_minima[p] = kernels::HasMinima<Block>;
    if constexpr (kernels::HasScalesOfParts<Block>) codes.part_scales[p] = block.part_scale[p][row];
    if constexpr (kernels::HasMinimaOfParts<Block>) {
      codes.part_minima[p] = static_cast<std::uint8_t>(block.part_minimum[p][row]);
    }
    if constexpr (kernels::HasNibblesOfParts<Block>) {
      codes.part_scales[p] = block.part_scale_and_minimum[p][row] & 0x0F;
      codes.part_minima[p] = block.part_scale_and_minimum[p][row] >> 4;
    }
  }
  for (std::size_t i = 0; i < kernels::blocks_of_32<Block>; ++i) {
    std::uint8_t quants[block_cols];
    read_quants(block.quants[i], row, quants);
    for (std::size_t col = 0; col < block_cols; ++col) {
      codes.codes[i * block_cols + col] = code_of<Block>(quants[col]);
    }
  }
  values_of(stored_type<Block>, codes, out);
}

#define MINIMIND_PART_BLOCK(Block)                                         \
  template void put_block(const std::byte*, std::size_t, kernels::Block&); \
  template void read_block(const kernels::Block&, std::size_t, float*);
MINIMIND_PART_BLOCK(Q41Block)
MINIMIND_PART_BLOCK(Q50Block)
MINIMIND_PART_BLOCK(Q51Block)
MINIMIND_PART_BLOCK(Q2KBlock)
MINIMIND_PART_BLOCK(Q3KBlock)
MINIMIND_PART_BLOCK(Q4KBlock)
MINIMIND_PART_BLOCK(Q5KBlock)
MINIMIND_PART_BLOCK(Q6KBlock)
MINIMIND_PART_BLOCK(Iq4XsBlock)
#undef MINIMIND_PART_BLOCK

}  // namespace minimind
