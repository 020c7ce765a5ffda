#pragma once

#include <cstddef>

namespace minimind {

// Row-major numbers owned by somebody else.
template <class T>
struct Matrix {
  T* data = nullptr;
  std::size_t rows = 0;
  std::size_t cols = 0;

  T* row(std::size_t i) const { return data + i * cols; }
  // Rows [first, last).
  Matrix row_range(std::size_t first, std::size_t last) const { return {row(first), last - first, cols}; }
};

template <class T>
Matrix<const T> as_const(Matrix<T> matrix) {
  return {matrix.data, matrix.rows, matrix.cols};
}

}  // namespace minimind
