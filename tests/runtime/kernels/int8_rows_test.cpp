#include "runtime/kernels/int8_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/engine/packed_matrix.h"
#include "runtime/kernels/blocks.h"
#include "tests/runtime/kernels/random_floats.h"
#include "tests/support/epsilon.h"
#include "tests/support/packed.h"
#include "tests/support/stored.h"
#include "tests/support/tables.h"

namespace minimind {
namespace {

using kernels::Int8Line;
using kernels::Int8Row;

// Rows of 8-bit integers, for every table that this machine can run.
class Int8Rows : public testing::TestWithParam<const kernels::Table*> {
 protected:
  // Rounds rows of `cols` values.
  std::vector<Int8Line> rounded(const std::vector<float>& values, std::size_t cols) const {
    const std::size_t lines = kernels::lines_per_row(cols);
    std::vector<Int8Line> out(values.size() / cols * lines);
    for (std::size_t i = 0; i < values.size() / cols; ++i) {
      GetParam()->blocks->rows.round(&values[i * cols], cols, &out[i * lines]);
    }
    return out;
  }

  std::vector<float> restored(const std::vector<Int8Line>& row, std::size_t cols) const {
    std::vector<float> out(cols);
    GetParam()->blocks->rows.restore(row.data(), cols, out.data());
    return out;
  }
};

INSTANTIATE_TEST_SUITE_P(EveryTable, Int8Rows, testing::ValuesIn(tables()),
                         [](const auto& parameter) { return parameter.param->name; });

Int8Row head_of(const Int8Line& line) {
  Int8Row head;
  std::memcpy(&head, &line, sizeof head);
  return head;
}

double norm_of(const std::vector<float>& x) {
  double squares = 0;
  for (const float value : x) squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

// Columns that are and are not multiples of 64, 16 and 4, with all sizes of Hadamard matrices.
constexpr std::size_t column_counts[] = {1, 5, 16, 31, 48, 64, 100, 256, 500, 768};

WeightMatrix as_q8_r(const std::vector<float>& values, std::size_t cols) {
  return pack(f32_tensor({values.size() / cols, cols}, values), DType::q8_r, 1);
}

const Int8Line* lines_of(const WeightMatrix& matrix, std::size_t panel) {
  return reinterpret_cast<const Int8Line*>(matrix.panel(panel));
}

float scale_of(const WeightMatrix& matrix, std::size_t row) {
  float scale;
  std::memcpy(&scale, &lines_of(matrix, row / 16)[0].value[row % 16 * sizeof scale], sizeof scale);
  return scale;
}

std::int8_t weight_of(const WeightMatrix& matrix, std::size_t row, std::size_t col) {
  return lines_of(matrix, row / 16)[1 + col / 4].value[row % 16 * 4 + col % 4];
}

std::vector<float> product(const kernels::Table& table, const WeightMatrix& matrix, const std::vector<Int8Line>& x,
                           Range panels) {
  const std::size_t row_bytes = kernels::lines_per_row(matrix.cols()) * sizeof(Int8Line);
  const std::size_t tokens = x.size() * sizeof(Int8Line) / row_bytes;
  std::vector<float> y(tokens * matrix.rows(), 77.0f);
  const Activations activations{.exact = {nullptr, tokens, matrix.cols()},
                                .rounded = {reinterpret_cast<const std::byte*>(x.data()), tokens, row_bytes}};
  matmul(table, matrix, panels, activations, Matrix<float>{y.data(), tokens, matrix.rows()});
  return y;
}

// So all instruction sets have the same bits.
TEST_P(Int8Rows, ProductsAreExactSumsTimesBothScales) {
  for (const std::size_t cols : column_counts) {
    for (const std::size_t rows : {1u, 16u, 40u, 83u}) {
      const WeightMatrix matrix = as_q8_r(random_floats(rows * cols, 1), cols);
      for (const std::size_t tokens : {1u, 2u, 7u, 8u, 9u, 15u, 16u, 17u, 33u, 50u, 70u}) {
        const std::vector<Int8Line> x = rounded(random_floats(tokens * cols, 2), cols);
        const std::vector<float> y = product(*GetParam(), matrix, x, {0, matrix.panels()});
        for (std::size_t t = 0; t < tokens; ++t) {
          const Int8Line* const line = &x[t * kernels::lines_per_row(cols)];
          for (std::size_t row = 0; row < rows; ++row) {
            std::int32_t sum = 0;
            for (std::size_t c = 0; c < cols; ++c) sum += weight_of(matrix, row, c) * line[1 + c / 64].value[c % 64];
            ASSERT_EQ(y[t * rows + row], static_cast<float>(sum) * (scale_of(matrix, row) * head_of(*line).scale))
                << rows << " x " << cols << ", row " << row << ", token " << t << " of " << tokens;
          }
        }
      }
    }
  }
}

TEST_P(Int8Rows, ProductsAreWrittenForTheRequestedPanelsAlone) {
  constexpr std::size_t cols = 96, rows = 75;
  const WeightMatrix matrix = as_q8_r(random_floats(rows * cols, 3), cols);
  for (const std::size_t tokens : {1u, 8u, 16u, 40u}) {
    const std::vector<Int8Line> x = rounded(random_floats(tokens * cols, 4), cols);
    const std::vector<float> all = product(*GetParam(), matrix, x, {0, 5});
    for (const Range panels : {Range{1, 4}, Range{0, 1}, Range{2, 2}, Range{4, 5}}) {
      const std::vector<float> some = product(*GetParam(), matrix, x, panels);
      for (std::size_t i = 0; i < some.size(); ++i) {
        const std::size_t panel = i % rows / 16;
        ASSERT_EQ(some[i], panel >= panels.begin && panel < panels.end ? all[i] : 77.0f) << tokens << ", " << i;
      }
    }
  }
}

// The mixed values, at most their norm in magnitude, are moved by half a step of 1/127 of the largest. Mixing and its
// reverse are orthogonal, and each adds four roundings.
TEST_P(Int8Rows, RoundingMovesARowByHalfAStepForEachColumn) {
  for (const std::size_t cols : column_counts) {
    std::vector<float> x = random_floats(cols, 5, 3);
    const std::vector<Int8Line> row = rounded(x, cols);
    const std::vector<float> back = restored(row, cols);
    const double bound = 0.5 * std::sqrt(static_cast<double>(cols)) * static_cast<double>(head_of(row[0]).scale) +
                         12 * epsilon * norm_of(x);
    for (std::size_t i = 0; i < cols; ++i) x[i] -= back[i];
    EXPECT_LE(norm_of(x), bound) << cols;
    std::int32_t sum = 0;
    for (std::size_t line = 1; line < row.size(); ++line) {
      for (const std::int8_t value : row[line].value) sum += value;
    }
    EXPECT_EQ(head_of(row[0]).sum, sum) << cols;
  }
}

// One scale of 100 / 127 would move each of the others by up to 0.4. Spread over 16 columns, the large value is 25.
TEST_P(Int8Rows, ALargeValueTakesLittlePrecisionOfTheOthers) {
  std::vector<float> x = random_floats(768, 6);
  x[200] = 100;
  const std::vector<Int8Line> row = rounded(x, x.size());
  EXPECT_LT(head_of(row[0]).scale, 0.3f * 100 / 127);
  EXPECT_NEAR(restored(row, x.size())[200], 100, 1);
}

// |(w + dw)(x + dx) - w x| <= |w| |dx| + |x| |dw| + |dw| |dx|, by Cauchy and Schwarz, for what rounding moves.
TEST_P(Int8Rows, ProductsAreThoseOfTheRowsButForRounding) {
  for (const std::size_t cols : column_counts) {
    const std::vector<float> w = random_floats(20 * cols, 7), x = random_floats(cols, 8);
    const WeightMatrix matrix = as_q8_r(w, cols);
    const std::vector<Int8Line> row = rounded(x, cols);
    const std::vector<float> y = product(*GetParam(), matrix, row, {0, 2});
    const double root = std::sqrt(static_cast<double>(cols));
    for (std::size_t r = 0; r < 20; ++r) {
      const std::vector<float> of_row(&w[r * cols], &w[r * cols] + cols);
      double exact = 0;
      for (std::size_t c = 0; c < cols; ++c) exact += static_cast<double>(of_row[c]) * x[c];
      const double moved_w = 0.5 * root * static_cast<double>(scale_of(matrix, r)) + 12 * epsilon * norm_of(of_row);
      const double moved_x = 0.5 * root * static_cast<double>(head_of(row[0]).scale) + 12 * epsilon * norm_of(x);
      ASSERT_NEAR(y[r], exact, norm_of(of_row) * moved_x + norm_of(x) * moved_w + moved_w * moved_x) << cols;
    }
  }
}

TEST_P(Int8Rows, RoundingHasTheBitsOfTheBestTable) {
  for (const std::size_t cols : column_counts) {
    const std::vector<float> x = random_floats(cols, 9, 3);
    std::vector<Int8Line> best(kernels::lines_per_row(cols));
    tables().front()->blocks->rows.round(x.data(), cols, best.data());
    EXPECT_EQ(std::memcmp(rounded(x, cols).data(), best.data(), best.size() * sizeof(Int8Line)), 0) << cols;
  }
}

TEST_P(Int8Rows, RowsOfZerosAndTinyValuesAreZero) {
  for (const float tiny : {0.0f, 1e-31f, -1e-40f}) {
    const std::vector<Int8Line> row = rounded(std::vector<float>(300, tiny), 300);
    EXPECT_EQ(head_of(row[0]).scale, 0.0f);
    EXPECT_EQ(restored(row, 300), std::vector<float>(300, 0.0f));
  }
}

TEST_P(Int8Rows, ProductsOfARowThatIsNotFiniteAreNan) {
  constexpr std::size_t cols = 300, rows = 20;
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (const std::size_t at : {0u, 255u, 299u}) {
      std::vector<float> w = random_floats(rows * cols, 10), x = random_floats(17 * cols, 11);
      w[3 * cols + at] = bad;
      x[5 * cols + at] = bad;
      const std::vector<float> y = product(*GetParam(), as_q8_r(w, cols), rounded(x, cols), {0, 2});
      for (std::size_t i = 0; i < y.size(); ++i) {
        ASSERT_EQ(std::isnan(y[i]), i % rows == 3 || i / rows == 5) << bad << " in column " << at << ", " << i;
      }
    }
  }
}

}  // namespace
}  // namespace minimind
