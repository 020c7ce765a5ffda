#include "runtime/engine/put_block.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "weights/tensor/block_codes.h"
#include "weights/tensor/dtype.h"
#include "weights/tensor/stored_numbers.h"

namespace minimind {
namespace {

using kernels::block_cols;
using kernels::group_cols;
using kernels::NibbleBlock;
using kernels::PartBlock;
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

// Columns must come in order: the first one of each byte replaces what it was.
template <std::size_t bits>
void put_bits(unsigned quant, std::size_t row, std::size_t col, kernels::BitPlane<bits>& plane) {
  const std::size_t first_bit = col / group_cols * bits, shift = first_bit % 8;
  std::uint8_t& byte = plane.bytes[first_bit / 8][row][col % group_cols];
  const unsigned shifted = (quant & ((1u << bits) - 1)) << shift;
  byte = static_cast<std::uint8_t>(shift == 0 ? shifted : byte | shifted);
}

template <std::size_t low_bits, std::size_t high_bits>
void put_quant(unsigned quant, std::size_t row, std::size_t col, kernels::PlaneQuants<low_bits, high_bits>& out) {
  put_bits(quant, row, col, out.low);
  if constexpr (high_bits > 0) put_bits(quant >> low_bits, row, col, out.high);
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

template <PartBlock Block>
void put_block(const std::byte* stored, std::size_t row, Block& out) {
  constexpr std::size_t parts = kernels::parts_of_32<Block> * kernels::blocks_of_32<Block>;
  BlockCodes codes;
  unpack_block(Block::stored_type, stored, codes);
  out.scale[row] = codes.scale.bits;
  if constexpr (kernels::HasMinima<Block>) out.minimum[row] = codes.minimum.bits;
  for (std::size_t p = 0; p < parts; ++p) {
    if constexpr (kernels::HasScalesOfParts<Block>) out.part_scale[p][row] = codes.part_scales[p];
    if constexpr (kernels::HasMinimaOfParts<Block>) {
      out.part_minimum[p][row] = static_cast<std::int8_t>(codes.part_minima[p]);
    }
    if constexpr (kernels::HasNibblesOfParts<Block>) {
      out.part_scale_and_minimum[p][row] = static_cast<std::uint8_t>(codes.part_scales[p] | codes.part_minima[p] << 4);
    }
  }
  for (std::size_t i = 0; i < kernels::blocks_of_32<Block>; ++i) {
    for (std::size_t col = 0; col < block_cols; ++col) {
      put_quant(quant_of<Block>(codes.codes[i * block_cols + col]), row, col, out.quants[i]);
    }
  }
}

template void put_block(const std::byte*, std::size_t, kernels::Q41Block&);
template void put_block(const std::byte*, std::size_t, kernels::Q50Block&);
template void put_block(const std::byte*, std::size_t, kernels::Q51Block&);
template void put_block(const std::byte*, std::size_t, kernels::Q2KBlock&);
template void put_block(const std::byte*, std::size_t, kernels::Q3KBlock&);
template void put_block(const std::byte*, std::size_t, kernels::Q4KBlock&);
template void put_block(const std::byte*, std::size_t, kernels::Q5KBlock&);
template void put_block(const std::byte*, std::size_t, kernels::Q6KBlock&);
template void put_block(const std::byte*, std::size_t, kernels::Iq4XsBlock&);

}  // namespace minimind
