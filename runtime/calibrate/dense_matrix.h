#pragma once

#include <cstddef>
#include <vector>

#include "runtime/engine/matrix.h"
#include "runtime/engine/packed_matrix.h"
#include "runtime/kernels/kernels.h"

namespace minimind {

template <class Number>
Number dot(const Number* a, const Number* b, std::size_t n) {
  Number sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// A matrix in f32 and in panels, for products with the kernels on one thread. The order of every sum depends on the
// matrix alone, so that the results are the same however rows of x are divided.
class DenseMatrix {
 public:
  DenseMatrix() = default;

  // The matrix of these values [rows, cols].
  DenseMatrix(const float* values, std::size_t rows, std::size_t cols);

  // The transpose [cols, rows] of these values [rows, cols].
  static DenseMatrix transposed(const float* values, std::size_t rows, std::size_t cols);

  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }

  // y[t] = matrix x[t]; with `continues`, y[t] += matrix x[t].
  void multiply(const kernels::Table& kernels, Matrix<const float> x, Matrix<float> y, bool continues = false) const;

  // A view of rows [first, first + count) and of the first `cols` columns; `first` must be a multiple of panel_rows.
  Panels<float> part(std::size_t first, std::size_t count, std::size_t cols) const;

 private:
  std::size_t rows_ = 0, cols_ = 0;
  std::vector<float> panels_;
};

}  // namespace minimind
