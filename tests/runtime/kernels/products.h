#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

#include "runtime/engine/packed_matrix.h"
#include "tests/support/epsilon.h"
#include "tests/support/tables.h"

// Products of packed matrices and what they may differ from the exact ones.
namespace minimind {

// The input of a product: exact, and for block types rounded by the table's own kernel.
class Input {
 public:
  Input(const kernels::Table& table, const WeightMatrix& matrix, const std::vector<float>& x) : x_(x) {
    const std::size_t n = matrix.cols(), tokens = x.size() / n;
    activations_.exact = {x_.data(), tokens, n};
    if (matrix.format().rounding != &to_int8_blocks) return;
    blocks_.resize(tokens * n / kernels::block_cols);
    for (std::size_t t = 0; t < tokens; ++t) table.quantize(&x_[t * n], n, &blocks_[t * n / kernels::block_cols]);
    activations_.rounded = {reinterpret_cast<const std::byte*>(blocks_.data()), tokens,
                            n / kernels::block_cols * sizeof(kernels::ActivationBlock)};
  }

  const Activations& activations() const { return activations_; }

  // The input of the product in column `col` of token `t`, and the most that rounding has moved it.
  double seen(std::size_t t, std::size_t col) const {
    if (blocks_.empty()) return activations_.exact.row(t)[col];
    const kernels::ActivationBlock& block = block_of(t, col);
    return static_cast<double>(block.scale) * block.quant[col % kernels::block_cols];
  }
  double rounding(std::size_t t, std::size_t col) const {
    return blocks_.empty() ? 0 : 0.5 * static_cast<double>(block_of(t, col).scale);
  }

 private:
  const kernels::ActivationBlock& block_of(std::size_t t, std::size_t col) const {
    return rounded_as<kernels::ActivationBlock>(activations_).row(t)[col / kernels::block_cols];
  }

  std::vector<float> x_;
  std::vector<kernels::ActivationBlock> blocks_;
  Activations activations_;
};

inline std::vector<float> product(const kernels::Table& table, const WeightMatrix& matrix,
                                  const std::vector<float>& x) {
  const std::size_t tokens = x.size() / matrix.cols();
  std::vector<float> y(tokens * matrix.rows(), NAN);
  const Range panels{0, kernels::panel_count(matrix.rows())};
  matmul(table, matrix, panels, Input(table, matrix, x).activations(), Matrix<float>{y.data(), tokens, matrix.rows()});
  return y;
}

// Tables differ in how many rows a register holds. A row's products are added in one order, one fma each, so that all
// tables have the same bits, besides that of SSE2, which has no fma.
inline void expect_bits_of_best_table(const kernels::Table& table, const WeightMatrix& matrix,
                                      const std::vector<float>& x) {
  if (table.name == std::string_view("sse2")) return;
  EXPECT_EQ(product(table, matrix, x), product(*tables().front(), matrix, x));
}

// Bound for the rounded input: |fl(sum) - sum| <= n epsilon sum |w x| for n products added one by one (Higham, Accuracy
// and Stability of Numerical Algorithms, section 3.1), with three more roundings for weights and activations of blocks,
// which are rounded products themselves. A weight that is a difference counts as the sum of its terms: `minima` has
// those that are subtracted. For the exact input, add each weight times the most that rounding to 8 bits moved its
// activation.
inline void expect_product(const kernels::Table& table, const WeightMatrix& matrix, const std::vector<float>& x,
                           const WeightMatrix* minima = nullptr) {
  const Input input(table, matrix, x);
  const std::vector<float> y = product(table, matrix, x);
  const std::size_t n = matrix.cols(), m = matrix.rows(), tokens = x.size() / n;
  std::vector<float> row(n), minimum(n);
  for (std::size_t r = 0; r < m; ++r) {
    read_row(matrix, r, row.data());
    if (minima) read_row(*minima, r, minimum.data());
    for (std::size_t t = 0; t < tokens; ++t) {
      double sum = 0, exact = 0, magnitude = 0, moved = 0;
      for (std::size_t c = 0; c < n; ++c) {
        const double seen = static_cast<double>(row[c]) * input.seen(t, c);
        sum += seen;
        magnitude += std::fabs(seen) + 2 * std::fabs(minimum[c] * input.seen(t, c));
        exact += static_cast<double>(row[c]) * x[t * n + c];
        moved += std::fabs(static_cast<double>(row[c])) * input.rounding(t, c);
      }
      const double bound = static_cast<double>(n + 3) * epsilon * magnitude;
      ASSERT_NEAR(y[t * m + r], sum, bound) << "row " << r << ", token " << t << " of " << m << " x " << n;
      ASSERT_NEAR(y[t * m + r], exact, bound + (1 + 4 * epsilon) * moved) << "row " << r << ", token " << t;
    }
  }
}

}  // namespace minimind
