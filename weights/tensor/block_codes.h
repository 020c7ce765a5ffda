#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

#include "weights/tensor/dtype.h"
#include "weights/tensor/half.h"

namespace minimind {

// A block as the integers that it stores, unpacked: the form that quantisers choose, that kernels multiply and that all
// types share whose blocks are integers with binary16 scales. A block consists of parts; part p has the values
//
//     scale * part_scales[p] * code - minimum * part_minima[p]
//
// in this order of binary32 operations: both products with a part's integer first, which are exact. The types differ in
// the ranges of the integers and in the length of a part only; see code_ranges. Integers that a type does not have must
// be the only number of their range, and its minimum 0.
struct BlockCodes {
  static constexpr std::size_t most_values = 256, most_parts = 16;

  F16 scale, minimum;
  std::int8_t part_scales[most_parts];
  std::uint8_t part_minima[most_parts];
  std::int8_t codes[most_values];
};

struct IntegerRange {
  int lowest, highest;
};

// What the integers of a type can be. A type without integer scales has one part and {1, 1}; q4_1 and q5_1, which have
// a minimum without an integer, have {1, 1} as `minima`; a type without a minimum has {0, 0}.
struct CodeRanges {
  std::size_t part;  // values of a part
  IntegerRange codes, scales, minima;
  std::span<const std::int8_t> book = {};  // the only codes, in increasing order; empty: all of the range
};

// The index of each code in iq4_nl_codes, the only book, at the code's own byte.
inline constexpr std::array<std::uint8_t, 256> book_indices = [] {
  std::array<std::uint8_t, 256> indices{};
  for (std::size_t i = 0; i < std::size(iq4_nl_codes); ++i) {
    indices[static_cast<std::uint8_t>(iq4_nl_codes[i])] = static_cast<std::uint8_t>(i);
  }
  return indices;
}();

// Returns true if the blocks of this type are BlockCodes: block_codes.cpp lists these types. The functions below
// require it.
bool has_block_codes(DType type);

CodeRanges code_ranges(DType type);

// Writes one block as it is in a GGUF file, block_shape(type).bytes. The integers must be in their ranges, and codes in
// the book.
void pack_block(DType type, const BlockCodes& codes, std::byte* out);

// The reverse, for any bytes.
void unpack_block(DType type, const std::byte* block, BlockCodes& out);

// Decodes `count` values, a multiple of block_shape(type).elements, from packed blocks.
void read_codes(DType type, const std::byte* blocks, std::size_t count, float* out);

}  // namespace minimind
