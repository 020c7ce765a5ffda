#pragma once

#include <cstddef>
#include <vector>

#include "runtime/calibrate/dense_matrix.h"
#include "runtime/calibrate/second_moments.h"

namespace minimind {

// How much the error e [cols] of a row of a weight matrix matters: e H eᵀ. H is the second moment of the matrix's
// inputs, with a part of its mean diagonal added to every element of the diagonal ("damping"), and scaled so that this
// mean is 1 before damping.
//
// Columns are in the order in which they are rounded, columns()[k] is the k-th. Those with the largest diagonal of H
// come first, because their errors have the most columns after them to make up for them; 256 columns that start at a
// multiple of 256 stay together, and so do 32 of these, and 16.
class ErrorMetric {
 public:
  // Factors H on `threads` threads; the result does not depend on their number. Moments without any weight give the
  // identity: squared errors.
  ErrorMetric(const SecondMoments& moments, double damping, std::size_t threads);

  std::size_t cols() const { return cols_; }
  const std::vector<std::size_t>& columns() const { return columns_; }

  // Multiplies e H eᵀ to the unit of the moments.
  double unit() const { return unit_; }

  float at(std::size_t row, std::size_t col) const;
  const DenseMatrix& matrix() const { return matrix_; }

  // H = (U + I) diag(pivots) (U + I)ᵀ with U [cols, cols] strictly upper triangular. So e H eᵀ is the sum over columns
  // k of pivots[k] * (e[k] + sum over i < k of e[i] U[i][k])²: when column k is rounded, the errors before it are
  // known.
  float feedback(std::size_t row, std::size_t col) const;
  const DenseMatrix& transposed_feedback() const { return transposed_feedback_; }
  const std::vector<float>& pivots() const { return pivots_; }

 private:
  std::size_t cols_;
  std::vector<std::size_t> columns_;
  double unit_ = 1;
  DenseMatrix matrix_, transposed_feedback_;
  std::vector<float> pivots_;
};

// Replaces the upper triangle of the symmetric positive definite `matrix` [n, n], row-major, by U above the diagonal
// and the pivots on it, as ErrorMetric states.
void factor_from_the_end(std::vector<double>& matrix, std::size_t n, std::size_t threads);

}  // namespace minimind
