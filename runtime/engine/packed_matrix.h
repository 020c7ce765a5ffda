#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include "runtime/engine/matrix.h"
#include "runtime/engine/thread_team.h"
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

// Whether products with these weights take activations rounded to bf16.
template <class Element>
inline constexpr bool is_bf16_block = std::is_same_v<Element, kernels::Bf16Block>;

// Returns the number of elements in a panel of `cols` columns.
template <class Element>
constexpr std::size_t elements_of(std::size_t cols) {
  if (is_bf16_block<Element>) return kernels::block_count(cols);
  constexpr std::size_t block_size = block_shape(stored_type<Element>).elements;
  return block_size > 1 ? cols / block_size : cols * kernels::panel_rows;
}

// A weight matrix laid out for the kernels: panels of 16 rows, in which the 16 values of each column (or, for block
// types and Bf16Block, the blocks of each 32 or 256 columns) are contiguous. Padding rows in the last panel are zero.
// 64-byte aligned.
template <class Element>
class PackedMatrix {
 public:
  using element_type = Element;

  // A matrix whose panels are, or will be, at `data`.
  PackedMatrix(std::size_t rows, std::size_t cols, std::shared_ptr<Element> data)
      : rows_(rows), cols_(cols), elements_per_panel_(elements_of<Element>(cols)), data_(std::move(data)) {}

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

inline void matmul(const kernels::Table& kernels, const Panels<kernels::Bf16Block>& matrix, Range panels,
                   Matrix<const Bf16> x, Matrix<float> y) {
  assert(kernels.bf16);
  kernels.bf16->matmul(
      {matrix.data, matrix.stride, matrix.rows, panels.begin, panels.end, x.data, x.cols, y.rows, y.data, y.cols});
}

using WeightMatrix =
    std::variant<PackedMatrix<float>, PackedMatrix<F16>, PackedMatrix<Bf16>, PackedMatrix<kernels::Bf16Block>,
                 PackedMatrix<kernels::Q8Block>, PackedMatrix<kernels::Q4Block>, PackedMatrix<kernels::Iq4NlBlock>,
                 PackedMatrix<kernels::Q41Block>, PackedMatrix<kernels::Q50Block>, PackedMatrix<kernels::Q51Block>,
                 PackedMatrix<kernels::Q4KBlock>, PackedMatrix<kernels::Q5KBlock>, PackedMatrix<kernels::Q6KBlock>,
                 PackedMatrix<kernels::Q2KBlock>, PackedMatrix<kernels::Q3KBlock>, PackedMatrix<kernels::Iq4XsBlock>>;

std::size_t rows(const WeightMatrix& matrix);
std::size_t cols(const WeightMatrix& matrix);

// Returns the bytes of the packed matrix, padding included, which a product with all of it reads.
std::size_t byte_size(const WeightMatrix& matrix);

// Reads one row as floats into out, [cols].
void read_row(const WeightMatrix& matrix, std::size_t row, float* out);

// The roundings of an input that products with some matrices require.
struct Roundings {
  bool to_int8 = false;  // in blocks of 32
  bool to_bf16 = false;

  Roundings operator|(Roundings other) const { return {to_int8 || other.to_int8, to_bf16 || other.to_bf16}; }
};

// The input of a product with weights, [T, cols]: exact, and rounded if a weight requires that.
struct Activations {
  Matrix<const float> exact;
  Matrix<const kernels::ActivationBlock> quantized;  // [T, cols / 32], or empty
  Matrix<const Bf16> bf16 = {};                      // [T, cols padded to 32], or empty

  Activations row_range(Range range) const {
    return {exact.row_range(range), quantized.data ? quantized.row_range(range) : quantized,
            bf16.data ? bf16.row_range(range) : bf16};
  }
};

// Returns the rounding that products with this matrix require: none if they take exact activations.
Roundings roundings_for(const WeightMatrix& matrix);

// Returns whether products with this matrix take activations rounded to 8 bits instead of exact ones.
bool takes_quantized(const WeightMatrix& matrix);

// Computes y[t] = matrix x[t] for every row t of y [T, rows] (T may be 0), for the columns of y that are rows of the
// given panels.
void matmul(const kernels::Table& kernels, const WeightMatrix& matrix, Range panels, const Activations& x,
            Matrix<float> y);

}  // namespace minimind
