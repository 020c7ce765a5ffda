#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <new>

namespace minimind {

// The indices [begin, end).
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
};

// A view of row-major values.
template <class T>
struct Matrix {
  T* data = nullptr;
  std::size_t rows = 0;
  std::size_t cols = 0;

  T* row(std::size_t i) const { return data + i * cols; }
  Matrix row_range(Range range) const { return {row(range.begin), range.size(), cols}; }
};

template <class T>
Matrix<const T> as_const(Matrix<T> matrix) {
  return {matrix.data, matrix.rows, matrix.cols};
}

// Memory for a matrix of up to [rows, cols] values, uninitialised. The system provides a page only when it is first
// written.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::size_t rows, std::size_t cols) : values_(new (alignment) T[rows * cols]), rows_(rows), cols_(cols) {}

  Matrix<T> rows(Range range) const { return rows(range, cols_); }

  // Returns contiguous rows of `cols` columns; the first starts where row `range.begin` of all columns starts.
  Matrix<T> rows(Range range, std::size_t cols) const {
    assert(range.end <= rows_ && cols <= cols_);
    return {values_.get() + range.begin * cols_, range.size(), cols};
  }
  Matrix<T> first(std::size_t rows) const { return this->rows({0, rows}); }
  T* row(std::size_t i) const { return values_.get() + i * cols_; }

 private:
  // A line of the processor's caches, in which kernels read whole registers and rows of tiles.
  static constexpr std::align_val_t alignment{64};
  struct Free {
    void operator()(T* values) const { ::operator delete[](values, alignment); }
  };
  std::unique_ptr<T[], Free> values_;
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
};

}  // namespace minimind
