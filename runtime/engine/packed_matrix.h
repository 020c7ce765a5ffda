#pragma once

#include <cstddef>
#include <memory>
#include <variant>

#include "runtime/engine/huge_page_arena.h"
#include "runtime/engine/matrix.h"
#include "runtime/engine/thread_team.h"
#include "runtime/kernels/kernels.h"
#include "weights/tensor/dtype.h"
#include "weights/tensor/half.h"

namespace minimind {

// The encoding in files of what a panel is made of.
template <class Element>
inline constexpr DType stored_type = DType::f32;
template <>
inline constexpr DType stored_type<F16> = DType::f16;
template <>
inline constexpr DType stored_type<Bf16> = DType::bf16;
template <>
inline constexpr DType stored_type<kernels::Q8Block> = DType::q8_0;
template <>
inline constexpr DType stored_type<kernels::Q4Block> = DType::q4_0;
template <>
inline constexpr DType stored_type<kernels::Iq4NlBlock> = DType::iq4_nl;

// Elements of a panel of so many columns.
template <class Element>
constexpr std::size_t elements_of(std::size_t cols) {
  return is_block_type(stored_type<Element>) ? cols / kernels::block_cols : cols * kernels::panel_rows;
}

// A weight matrix laid out for the kernels: panels of 16 rows, in which each column's 16 numbers (or, for the block
// types, each 32 columns' blocks) lie together. Rows that fill up the last panel are zero. 64-byte aligned.
template <class Element>
class PackedMatrix {
 public:
  using element_type = Element;

  // Takes its memory from `memory`; contents are uninitialised. Throws Error when rows x cols overflows, std::bad_alloc
  // when memory is short.
  PackedMatrix(std::size_t rows, std::size_t cols, HugePageArena& memory);

  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  std::size_t panels() const { return kernels::panel_count(rows_); }
  std::size_t elements_per_panel() const { return elements_per_panel_; }
  std::size_t byte_size() const { return panels() * elements_per_panel_ * sizeof(Element); }

  const Element* data() const { return data_.get(); }
  Element* panel(std::size_t i) { return data_.get() + i * elements_per_panel_; }
  const Element* panel(std::size_t i) const { return data_.get() + i * elements_per_panel_; }

 private:
  std::size_t rows_;
  std::size_t cols_;
  std::size_t elements_per_panel_;
  std::shared_ptr<Element> data_;
};

// Panels of a matrix [rows, cols] of `Element`, wherever they are stored.
template <class Element>
struct Panels {
  const Element* data;
  std::size_t stride;  // elements from one panel to the next
  std::size_t rows;
  std::size_t cols;

  Range all() const { return {0, kernels::panel_count(rows)}; }
};

// y[t] = matrix x[t] for every row t of y, for the columns of y that are rows of the given panels. x is [T, cols], or
// [T, cols / 32] blocks for block types; y is [T, rows], or starts within longer rows of y.cols values.
template <class Element>
void matmul(const kernels::Table& kernels, const Panels<Element>& matrix, Range panels, Matrix<const float> x,
            Matrix<float> y) {
  kernels.matmul(kernels::Matmul<Element>{matrix.data, matrix.stride, matrix.rows, matrix.cols, panels.begin,
                                          panels.end, x.data, x.cols, y.rows, y.data, y.cols});
}
template <class Block>
void matmul(const kernels::Table& kernels, const Panels<Block>& matrix, Range panels,
            Matrix<const kernels::ActivationBlock> x, Matrix<float> y) {
  kernels.matmul(kernels::BlockMatmul<Block>{matrix.data, matrix.stride, matrix.rows, matrix.cols, panels.begin,
                                             panels.end, x.data, x.cols, y.rows, y.data, y.cols});
}

using WeightMatrix =
    std::variant<PackedMatrix<float>, PackedMatrix<F16>, PackedMatrix<Bf16>, PackedMatrix<kernels::Q8Block>,
                 PackedMatrix<kernels::Q4Block>, PackedMatrix<kernels::Iq4NlBlock>>;

std::size_t rows(const WeightMatrix& matrix);
std::size_t cols(const WeightMatrix& matrix);

// As laid out, padding included: what a product with the whole of it reads.
std::size_t byte_size(const WeightMatrix& matrix);

// One row as floats; out is [cols].
void read_row(const WeightMatrix& matrix, std::size_t row, float* out);

// What is multiplied with weights, [T, cols]: exact, and rounded to 8 bits in blocks of 32 if a weight requires that.
struct Activations {
  Matrix<const float> exact;
  Matrix<const kernels::ActivationBlock> quantized;  // [T, cols / 32], or empty

  Activations row_range(Range range) const {
    return {exact.row_range(range), quantized.data ? quantized.row_range(range) : quantized};
  }
};

// Whether products with it take the activations rounded to 8 bits, and not exact.
bool takes_quantized(const WeightMatrix& matrix);

// y[t] = matrix x[t] for every row t of y [T, rows], of which there may be none, for the columns of y that are rows of
// the given panels.
void matmul(const kernels::Table& kernels, const WeightMatrix& matrix, Range panels, const Activations& x,
            Matrix<float> y);

}  // namespace minimind
