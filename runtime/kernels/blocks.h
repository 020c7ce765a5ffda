#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/kernels/int8_rows.h"
#include "runtime/kernels/kernels.h"
#include "weights/tensor/dtype.h"

// The block types that GGUF files have besides q8_0, as the kernels take them, and their products.

namespace minimind::kernels {

struct NibbleBlock {                // column c < 16 is in the low halves of nibbles[c / 4], c + 16 in the high halves
  std::uint16_t scale[panel_rows];  // binary16
  std::uint8_t nibbles[block_cols / group_cols / 2][panel_rows][group_cols];
};
struct Q4Block : NibbleBlock {  // w = scale * (nibble - 8)
  static constexpr DType stored_type = DType::q4_0;
  static constexpr int centre = 8;
};
struct Iq4NlBlock : NibbleBlock {  // w = scale * iq4_nl_codes[nibble]
  static constexpr DType stored_type = DType::iq4_nl;
};

// The others: parts of 16 or 32 columns with
//   w = scale * part_scale * (quant - centre) - minimum * part_minimum
// The factors that a type does not have count as 1, its minimum as 0. A block has 32 columns, or 256 whose parts have
// integers of their own.

// `bits` bits (1, 2 or 4) of the quants of 32 columns: those of group g are bits g * bits % 8 and up of bytes[g * bits
// / 8].
template <std::size_t bits>
struct BitPlane {
  std::uint8_t bytes[bits][panel_rows][group_cols];
};
template <std::size_t low_bits, std::size_t high_bits>
struct PlaneQuants {
  static constexpr int bits = low_bits + high_bits;
  BitPlane<low_bits> low;
  BitPlane<high_bits> high;
};
template <std::size_t low_bits>
struct PlaneQuants<low_bits, 0> {
  static constexpr int bits = low_bits;
  BitPlane<low_bits> low;
};

struct Q41Block {
  static constexpr DType stored_type = DType::q4_1;
  static constexpr int centre = 0;
  std::uint16_t scale[panel_rows], minimum[panel_rows];  // binary16, as in all these blocks
  PlaneQuants<4, 0> quants[1];
};
struct Q50Block {
  static constexpr DType stored_type = DType::q5_0;
  static constexpr int centre = 16;
  std::uint16_t scale[panel_rows];
  PlaneQuants<4, 1> quants[1];
};
struct Q51Block {
  static constexpr DType stored_type = DType::q5_1;
  static constexpr int centre = 0;
  std::uint16_t scale[panel_rows], minimum[panel_rows];
  PlaneQuants<4, 1> quants[1];
};
struct Q2KBlock {
  static constexpr DType stored_type = DType::q2_k;
  static constexpr int centre = 0;
  std::uint16_t scale[panel_rows], minimum[panel_rows];
  std::uint8_t part_scale_and_minimum[16][panel_rows];  // low and high nibble
  PlaneQuants<2, 0> quants[8];
};
struct Q3KBlock {
  static constexpr DType stored_type = DType::q3_k;
  static constexpr int centre = 4;
  std::uint16_t scale[panel_rows];
  std::int8_t part_scale[16][panel_rows];
  PlaneQuants<2, 1> quants[8];
};
struct Q4KBlock {
  static constexpr DType stored_type = DType::q4_k;
  static constexpr int centre = 0;
  std::uint16_t scale[panel_rows], minimum[panel_rows];
  std::int8_t part_scale[8][panel_rows], part_minimum[8][panel_rows];
  PlaneQuants<4, 0> quants[8];
};
struct Q5KBlock {
  static constexpr DType stored_type = DType::q5_k;
  static constexpr int centre = 0;
  std::uint16_t scale[panel_rows], minimum[panel_rows];
  std::int8_t part_scale[8][panel_rows], part_minimum[8][panel_rows];
  PlaneQuants<4, 1> quants[8];
};
struct Q6KBlock {
  static constexpr DType stored_type = DType::q6_k;
  static constexpr int centre = 32;
  std::uint16_t scale[panel_rows];
  std::int8_t part_scale[16][panel_rows];
  PlaneQuants<4, 2> quants[8];
};
struct Iq4XsBlock {  // w = scale * part_scale * iq4_nl_codes[quant]
  static constexpr DType stored_type = DType::iq4_xs;
  static constexpr int centre = 0;
  std::uint16_t scale[panel_rows];
  std::int8_t part_scale[8][panel_rows];
  PlaneQuants<4, 0> quants[8];
};

// What such a block type has.
template <class Block>
concept PartBlock = requires(const Block& block) {
  block.quants;
};
template <class Block>
concept HasMinima = requires(const Block& block) {
  block.minimum;
};
template <class Block>
concept HasScalesOfParts = requires(const Block& block) {
  block.part_scale;
};
template <class Block>
concept HasMinimaOfParts = requires(const Block& block) {
  block.part_minimum;
};
template <class Block>
concept HasNibblesOfParts = requires(const Block& block) {
  block.part_scale_and_minimum;
};
template <class Block>
concept HasCodes = std::is_same_v<Block, Iq4NlBlock> || std::is_same_v<Block, Iq4XsBlock>;

// How many times 32 columns it has, and the parts of 32 columns: one or two.
template <PartBlock Block>
inline constexpr std::size_t blocks_of_32 = std::extent_v<decltype(Block::quants)>;
template <class Block>
inline constexpr std::size_t parts_of_32 = 1;
template <HasScalesOfParts Block>
inline constexpr std::size_t parts_of_32<Block> = std::extent_v<decltype(Block::part_scale)> / blocks_of_32<Block>;
template <HasNibblesOfParts Block>
inline constexpr std::size_t parts_of_32<Block> =
    std::extent_v<decltype(Block::part_scale_and_minimum)> / blocks_of_32<Block>;

// The products of all these types, and those of a cache. What is kept as it is stored, packed and multiplied is listed
// here alone.
struct BlockProducts : ProductsOf<Q4Block, Iq4NlBlock, Q41Block, Q50Block, Q51Block, Q4KBlock, Q5KBlock, Q6KBlock,
                                  Q2KBlock, Q3KBlock, Iq4XsBlock>,
                       ProductOf<I8Block> {
  Int8Products rows;  // of q8_r

  // As Table::multiply_add(), with 8-bit integers, 1 times `factor`, in the fastest way of this instruction set.
  float (*multiply_add)(std::int8_t factor, std::size_t rounds) noexcept;
  std::size_t multiply_adds_per_round;
};

// For Table::matmul().
template <class Block>
void multiply(const BlockProducts& of, const BlockMatmul<Block>& m) noexcept {
  of.ProductOf<Block>::multiply(m);
}

// The products by instructions that multiply matrices, which replace those of a dot product; and their
// BlockProducts::multiply_add.
struct MatrixProducts {
  ProductOf<Q8Block> q8_0;
  ProductsOf<Q4Block, Iq4NlBlock, I8Block> blocks;
  void (*multiply_rows)(const Int8Matmul&) noexcept;
  float (*multiply_add)(std::int8_t factor, std::size_t rounds) noexcept;
  std::size_t multiply_adds_per_round;
};

#if defined(__x86_64__)
extern const BlockProducts sse2_blocks, avx2_blocks, avxvnni_blocks, avx512vnni_blocks;
extern const ProductOf<Q8Block> avxvnni;
extern const MatrixProducts amxint8;
extern const Bf16Products avx512bf16, amxbf16;
#elif defined(__aarch64__)
extern const BlockProducts neon_blocks, neon_dotprod_blocks;
extern const ProductOf<Q8Block> neon_dotprod;
extern const MatrixProducts neon_i8mm;
#elif defined(__wasm__)
extern const BlockProducts simd128_blocks;
#endif

}  // namespace minimind::kernels
