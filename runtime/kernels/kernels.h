#pragma once

#include <cstddef>
#include <cstdint>

#include "weights/model/hidden_act.h"
#include "weights/tensor/dtype.h"

namespace minimind {

struct F16;
struct Bf16;

namespace kernels {

// Matrices are multiplied in panels of this many rows, regardless of the instruction set: 16 floats fill one AVX-512
// register, two AVX, four SSE or NEON registers. In a panel, the 16 values of each column are contiguous, one column
// after the other, so that a product needs no horizontal sums and reads memory in order.
inline constexpr std::size_t panel_rows = 16;

// Returns the number of panels for `rows` rows; the last one may be partly filled.
constexpr std::size_t panel_count(std::size_t rows) {
  return rows / panel_rows + (rows % panel_rows != 0);
}

// Blocks of 32 columns with one scale per row, as in GGUF's q8_0, q4_0 and iq4_nl, for the 16 rows of a panel. Four
// columns of a row are contiguous: one instruction multiplies and adds four per row.
inline constexpr std::size_t block_cols = 32;
inline constexpr std::size_t group_cols = 4;

// Returns the number of blocks for `cols` columns; the last one may be partly filled.
constexpr std::size_t block_count(std::size_t cols) {
  return cols / block_cols + (cols % block_cols != 0);
}

struct Q8Block {  // w = scale * quant
  static constexpr DType stored_type = DType::q8_0;
  std::uint16_t scale[panel_rows];  // binary16
  std::int8_t quant[block_cols / group_cols][panel_rows][group_cols];
};
struct I8Block {  // w = quant; the activations include the columns' scales, if any
  std::int8_t quant[block_cols / group_cols][panel_rows][group_cols];
};

// bf16 weights for products of bf16: two columns of a row are contiguous, because one instruction multiplies and adds
// two. The last block of a panel is padded with zeros.
struct Bf16Block {
  std::uint16_t value[block_cols / 2][panel_rows][2];
};

// 32 columns of a row of activations, rounded to 8 bits: |x - scale * quant| <= scale / 2.
struct ActivationBlock {
  float scale;                    // max |x| / 127; 0 if max |x| is below 1e-30; NaN if an x is not finite
  float scaled_sum;               // scale * sum
  std::int16_t sum;               // of quant
  std::int16_t low_sum;           // of its first half
  std::int8_t quant[block_cols];  // -127 to 127
};

// y[token][row] = sum over cols of w[row][col] * x[token][col], for the rows of panels [first_panel, last_panel). W and
// X are single values, or blocks of columns. Arithmetic is f32, and for one row and token always in the same order,
// regardless of `tokens`.
template <class W, class X>
struct Product {
  const W* panels;           // [ceil(rows / 16)][cols][16], or [ceil(rows / 16)][cols / columns of a block]
  std::size_t panel_stride;  // values or blocks from one panel to the next, at least those of one
  std::size_t rows, cols;    // the last panel also has padding rows, whose products are not written
  std::size_t first_panel, last_panel;
  const X* x;  // [tokens][x_stride]
  std::size_t x_stride;
  std::size_t tokens;      // 1 at least
  float* y;                // [tokens][y_stride]; only the requested rows are written
  std::size_t y_stride;    // may be less than rows, if the requested ones are not more
  bool continues = false;  // y has the sum over earlier columns, to which this adds; else it is only written
};
template <class W>
using Matmul = Product<W, float>;

// For block types, cols is a multiple of a block's. The sum of products of a block, or of a part, is an exact integer,
// so that instruction sets differ at most by the rounding of a few float products and sums per block.
template <class W>
using BlockMatmul = Product<W, ActivationBlock>;

// The same product of bf16 with bf16. Sums are f32. Values below the smallest normal float count as 0, before and after
// each operation.
struct Bf16Matmul {
  const Bf16Block* panels;  // [ceil(rows / 16)][blocks]
  std::size_t blocks;       // of a panel: ceil(columns / 32)
  std::size_t rows;         // the last panel also has padding rows, whose products are not written
  std::size_t first_panel, last_panel;
  const Bf16* x;  // [tokens][x_stride], at least 32 * blocks
  std::size_t x_stride;
  std::size_t tokens;  // 1 at least
  float* y;            // [tokens][y_stride]; only the requested rows are written
  std::size_t y_stride;
};

// Products of bf16 by one set of instructions. The order of a sum depends on the set, not on `tokens`.
struct Bf16Products {
  const char* name;
  void (*matmul)(const Bf16Matmul&) noexcept;

  // Rounds n values to bf16, halves to even, and pads them with zeros to whole blocks.
  void (*round)(const float* x, std::size_t n, Bf16* out) noexcept;

  // The limit of the machine, like Table::multiply_add.
  float (*multiply_add)(std::size_t rounds) noexcept;
  std::size_t multiply_adds_per_round;
};

using Activation = HiddenAct;

// The products of some block types with 8-bit activations, each of which is ProductOf<Block>::multiply.
template <class Block>
struct ProductOf {
  void (*multiply)(const BlockMatmul<Block>&) noexcept;
};
template <class... Blocks>
struct ProductsOf : ProductOf<Blocks>... {};

struct BlockProducts;  // of the other block types, blocks.h

// Every inner loop of the engine, compiled once per instruction set. All are single-threaded and noexcept. Pointers
// need no alignment, and lengths may be any number unless stated.
struct Table {
  const char* name;  // as MINIMIND_ISA spells it

  void (*matmul_f32)(const Matmul<float>&) noexcept;
  void (*matmul_f16)(const Matmul<F16>&) noexcept;
  void (*matmul_bf16)(const Matmul<Bf16>&) noexcept;
  ProductOf<Q8Block> q8_0;

  // Rounds n values to 8 bits, halves to even; the last block is padded with zeros.
  void (*quantize)(const float* x, std::size_t n, ActivationBlock* out) noexcept;

  // Rounds x[i] * scale[i] in the same way.
  void (*quantize_scaled)(const float* x, const F16* scale, std::size_t n, ActivationBlock* out) noexcept;

  // out = x / sqrt(mean(x^2) + eps) * weight (Zhang & Sennrich 2019, arXiv:1910.07467). `out` may be `x`.
  void (*rms_norm)(const float* x, const float* weight, std::size_t n, float eps, float* out) noexcept;

  // Rotates the pairs of one head in place by the angles with these cosines and sines, [head_dim / 2] each (Su et al.
  // 2021, arXiv:2104.09864): elements i and i + head_dim / 2, or 2i and 2i + 1.
  void (*rope_halves)(float* head, const float* cos, const float* sin, std::size_t head_dim) noexcept;
  void (*rope_adjacent_pairs)(float* head, const float* cos, const float* sin, std::size_t head_dim) noexcept;

  // Rounds n values to binary16, halves to even.
  void (*round_to_f16)(const float* x, std::size_t n, F16* out) noexcept;

  // x = exp(x - max) / sum
  void (*softmax)(float* x, std::size_t n) noexcept;

  // gate = activation(gate) * up, or activation(gate) if `up` is null.
  void (*activate)(Activation activation, float* gate, const float* up, std::size_t n) noexcept;

  void (*add)(float* x, const float* y, std::size_t n) noexcept;                      // x += y
  void (*add_scaled)(float* x, const float* y, float scale, std::size_t n) noexcept;  // x += scale * y

  const BlockProducts* blocks;  // nullptr except in tables of all_instruction_sets.cpp
  ProductOf<I8Block> i8;        // as `blocks`, for caches of q8_0
  const Bf16Products* bf16;     // nullptr except in tables of with_bf16(), all_instruction_sets.h

  // The limits of the machine, as a reference for measurements. read() adds n floats; multiply_add() multiplies and
  // adds in registers only, the stated number of times per round. Both return a sum, so that no compiler omits the
  // work.
  float (*read)(const float* x, std::size_t n) noexcept;
  float (*multiply_add)(float factor, float addend, std::size_t rounds) noexcept;
  std::size_t multiply_adds_per_round;

  // The products of all encodings under one name.
  void matmul(const Matmul<float>& m) const noexcept { matmul_f32(m); }
  void matmul(const Matmul<F16>& m) const noexcept { matmul_f16(m); }
  void matmul(const Matmul<Bf16>& m) const noexcept { matmul_bf16(m); }
  void matmul(const BlockMatmul<Q8Block>& m) const noexcept { q8_0.multiply(m); }
  void matmul(const BlockMatmul<I8Block>& m) const noexcept { i8.multiply(m); }
  template <class Block>
  void matmul(const BlockMatmul<Block>& m) const noexcept {
    multiply(*blocks, m);  // blocks.h
  }
};

// Of each architecture: those of other ones are not defined. simd128 is the code of SSE2, which compilers for
// WebAssembly know; avx512 is without products of q8_0: see instruction_sets.h.
extern const Table sse2, avx2, avx512, neon, simd128;
extern const ProductOf<Q8Block> avx512vnni;

}  // namespace kernels
}  // namespace minimind
