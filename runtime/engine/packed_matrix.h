#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "runtime/engine/matrix.h"
#include "runtime/kernels/kernels.h"
#include "weights/tensor/dtype.h"
#include "weights/tensor/half.h"

namespace minimind {

// The encoding that a panel's elements have in files.
template <class Element>
inline constexpr DType stored_type = Element::stored_type;
template <>
inline constexpr DType stored_type<float> = DType::f32;
template <>
inline constexpr DType stored_type<F16> = DType::f16;
template <>
inline constexpr DType stored_type<Bf16> = DType::bf16;

// Returns the number of elements in a panel of `cols` columns.
template <class Element>
constexpr std::size_t elements_of(std::size_t cols) {
  constexpr std::size_t block_size = block_shape(stored_type<Element>).elements;
  return block_size > 1 ? cols / block_size : cols * kernels::panel_rows;
}

// A view of the panels of a matrix [rows, cols].
template <class Element>
struct Panels {
  const Element* data;
  std::size_t stride;  // elements from one panel to the next
  std::size_t rows;
  std::size_t cols;

  Range all() const { return {0, kernels::panel_count(rows)}; }
};

// Computes y[t] = matrix x[t] for every row t of y, for the columns of y that are rows of the given panels. x
// is [T, cols], or [T, cols / 32] blocks for block types; x and y may start within longer rows of x.cols and y.cols
// values. If `continues`, y is the sum over earlier columns, to which this adds.
template <class Element>
void matmul(const kernels::Table& kernels, const Panels<Element>& matrix, Range panels, Matrix<const float> x,
            Matrix<float> y, bool continues = false) {
  kernels.matmul(kernels::Matmul<Element>{matrix.data, matrix.stride, matrix.rows, matrix.cols, panels.begin,
                                          panels.end, x.data, x.cols, y.rows, y.data, y.cols, continues});
}
template <class Block>
void matmul(const kernels::Table& kernels, const Panels<Block>& matrix, Range panels,
            Matrix<const kernels::ActivationBlock> x, Matrix<float> y, bool continues = false) {
  kernels.matmul(kernels::BlockMatmul<Block>{matrix.data, matrix.stride, matrix.rows, matrix.cols, panels.begin,
                                             panels.end, x.data, x.cols, y.rows, y.data, y.cols, continues});
}

// How products with some matrices take their inputs.
struct Rounding {
  bool to_int8;
  std::size_t (*row_bytes)(std::size_t cols);
  void (*round)(const kernels::Table& kernels, const float* x, std::size_t cols, std::byte* out);
};

// The input of a product with weights, [T, cols]: exact, and rounded if a weight requires that.
struct Activations {
  Matrix<const float> exact;
  Matrix<const std::byte> rounded = {};  // [T, Rounding::row_bytes], or empty

  Activations row_range(Range range) const {
    return {exact.row_range(range), rounded.data ? rounded.row_range(range) : rounded};
  }
};

// The rounded input as the elements that the kernels take.
template <class Element>
Matrix<const Element> rounded_as(const Activations& x) {
  return {reinterpret_cast<const Element*>(x.rounded.data), x.rounded.rows, x.rounded.cols / sizeof(Element)};
}

// To 8 bits in blocks of 32: ActivationBlock.
extern const Rounding to_int8_blocks;

class WeightMatrix;

// How weights of a type are laid out for the kernels and multiplied. A panel has 16 rows, in which the 16 values of
// each column (or, for block types and Bf16Block, the blocks of each 32 or 256 columns) are contiguous.
struct MatrixFormat {
  DType type;
  DType laid_out_from;       // what lay_out() reads: `type`, or f32 if that is for memory only
  const Rounding* rounding;  // that products require of their inputs; null if they take exact activations
  std::size_t (*panel_bytes)(std::size_t cols);
  std::size_t most_cols = SIZE_MAX / (kernels::panel_rows * sizeof(float));

  // Writes up to 16 rows, stored as `laid_out_from` and `row_size` bytes apart, into their panel. Of types that are
  // stored, also only their first columns.
  void (*lay_out)(const std::byte* source, std::size_t row_size, std::size_t rows, std::size_t cols, std::byte* panel);

  // Reads row `row` of a panel of `cols` columns as floats into out, [cols].
  void (*read_row)(const std::byte* panel, std::size_t row, std::size_t cols, float* out);

  // As matmul() below.
  void (*multiply)(const kernels::Table& kernels, const WeightMatrix& matrix, Range panels, const Activations& x,
                   Matrix<float> y);
};

// The formats of this program besides those of f32, f16, bf16 and q8_0, which are always there. Every program defines
// its list: all_matrix_formats.cpp has those of kernels::BlockProducts and of products of bf16.
extern const std::span<const MatrixFormat> more_matrix_formats;

// Returns the format of weights stored as `type`, with products of bf16 or without; null if this program has none.
const MatrixFormat* find_matrix_format(DType type, bool of_bf16_products = false);

// A weight matrix [rows, cols] laid out for the kernels, in panels of 16 rows. Padding rows in the last panel are zero.
// 64-byte aligned.
class WeightMatrix {
 public:
  // A matrix whose panels are, or will be, at `data`.
  WeightMatrix(const MatrixFormat& format, std::size_t rows, std::size_t cols, std::shared_ptr<std::byte> data)
      : format_(&format), rows_(rows), cols_(cols), panel_bytes_(format.panel_bytes(cols)), data_(std::move(data)) {}

  const MatrixFormat& format() const { return *format_; }
  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  std::size_t panels() const { return kernels::panel_count(rows_); }
  std::size_t panel_bytes() const { return panel_bytes_; }

  // The bytes of the panels, padding included, which a product with all of it reads.
  std::size_t byte_size() const { return panels() * panel_bytes_; }

  std::byte* data() const { return data_.get(); }
  std::byte* panel(std::size_t i) const { return data_.get() + i * panel_bytes_; }

 private:
  const MatrixFormat* format_;
  std::size_t rows_;
  std::size_t cols_;
  std::size_t panel_bytes_;
  std::shared_ptr<std::byte> data_;
};

// The panels of a matrix of Elements.
template <class Element>
Panels<Element> panels_of(const WeightMatrix& matrix) {
  assert(matrix.format().type == stored_type<Element>);
  return {reinterpret_cast<const Element*>(matrix.data()), elements_of<Element>(matrix.cols()), matrix.rows(),
          matrix.cols()};
}

// Reads one row as floats into out, [cols].
inline void read_row(const WeightMatrix& matrix, std::size_t row, float* out) {
  matrix.format().read_row(matrix.panel(row / kernels::panel_rows), row % kernels::panel_rows, matrix.cols(), out);
}

// Computes y[t] = matrix x[t] for every row t of y [T, rows] (T may be 0), for the columns of y that are rows of the
// given panels.
inline void matmul(const kernels::Table& kernels, const WeightMatrix& matrix, Range panels, const Activations& x,
                   Matrix<float> y) {
  if (y.rows > 0) matrix.format().multiply(kernels, matrix, panels, x, y);
}

// The format of a type whose elements are Blocks: a kernel's block of 16 rows has the integers and scales of blocks as
// they are in GGUF files, in another order. read(block, row, out) computes the values of one row, bit for bit those of
// dequantize() for the stored block.
template <class Block, auto lay_out, auto read>
constexpr MatrixFormat format_of_blocks() {
  constexpr BlockShape shape = block_shape(stored_type<Block>);
  static_assert(10 * sizeof(Block) <= 11 * shape.bytes * kernels::panel_rows);
  return {
      .type = stored_type<Block>,
      .laid_out_from = stored_type<Block>,
      .rounding = &to_int8_blocks,
      .panel_bytes = [](std::size_t cols) { return elements_of<Block>(cols) * sizeof(Block); },
      .lay_out = lay_out,
      .read_row =
          [](const std::byte* panel, std::size_t row, std::size_t cols, float* out) {
            const auto blocks = reinterpret_cast<const Block*>(panel);
            for (std::size_t i = 0; i < elements_of<Block>(cols); ++i) read(blocks[i], row, out + i * shape.elements);
          },
      .multiply =
          [](const kernels::Table& kernels, const WeightMatrix& matrix, Range panels, const Activations& x,
             Matrix<float> y) {
            const auto blocks = rounded_as<kernels::ActivationBlock>(x);
            assert(blocks.rows == y.rows && blocks.cols * kernels::block_cols == matrix.cols());
            matmul(kernels, panels_of<Block>(matrix), panels, blocks, y);
          },
  };
}

}  // namespace minimind
