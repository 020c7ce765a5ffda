#include "runtime/calibrate/dense_matrix.h"

#include <algorithm>
#include <cassert>

namespace minimind {

using kernels::panel_rows;

DenseMatrix::DenseMatrix(const float* values, std::size_t rows, std::size_t cols)
    : rows_(rows), cols_(cols), panels_(kernels::panel_count(rows) * panel_rows * cols) {
  for (std::size_t row = 0; row < rows; ++row) {
    float* const panel = panels_.data() + row / panel_rows * panel_rows * cols + row % panel_rows;
    for (std::size_t col = 0; col < cols; ++col) panel[col * panel_rows] = values[row * cols + col];
  }
}

DenseMatrix DenseMatrix::transposed(const float* values, std::size_t rows, std::size_t cols) {
  DenseMatrix result;
  result.rows_ = cols;
  result.cols_ = rows;
  result.panels_.resize(kernels::panel_count(cols) * panel_rows * rows);
  for (std::size_t first = 0; first < cols; first += panel_rows) {
    const std::size_t count = std::min(panel_rows, cols - first);
    float* const panel = result.panels_.data() + first * rows;
    for (std::size_t row = 0; row < rows; ++row) {
      std::copy_n(values + row * cols + first, count, panel + row * panel_rows);
    }
  }
  return result;
}

void DenseMatrix::multiply(const kernels::Table& kernels, Matrix<const float> x, Matrix<float> y,
                           bool continues) const {
  if (x.rows == 0) return;
  assert(x.cols == cols_ && y.cols == rows_ && x.rows == y.rows);
  const Panels<float> all = part(0, rows_, cols_);
  matmul(kernels, all, all.all(), x, y, continues);
}

Panels<float> DenseMatrix::part(std::size_t first, std::size_t count, std::size_t cols) const {
  assert(first % panel_rows == 0 && first + count <= rows_ && cols <= cols_);
  return {panels_.data() + first * cols_, panel_rows * cols_, count, cols};
}

}  // namespace minimind
