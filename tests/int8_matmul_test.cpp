#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "runtime/kernels/kernels.h"

namespace minimind {
namespace {

constexpr double epsilon = std::numeric_limits<float>::epsilon();

// For every table that this machine can run.
class Int8Matmul : public testing::TestWithParam<const kernels::Table*> {};

std::vector<const kernels::Table*> tables() {
  const kernels::TableList list = kernels::runnable();
  return {list.tables, list.tables + list.count};
}

INSTANTIATE_TEST_SUITE_P(EveryTable, Int8Matmul, testing::ValuesIn(tables()),
                         [](const auto& parameter) { return parameter.param->name; });

struct Size {
  std::size_t rows, cols, tokens;
};

// Panels of numbers of 8 bits, which have no rows behind them: a key's or value's.
struct Int8Product {
  std::size_t rows, cols, tokens;
  std::vector<std::int8_t> panels;
  std::vector<float> x;

  std::int8_t weight(std::size_t row, std::size_t col) const {
    return panels[row / 16 * 16 * cols + col * 16 + row % 16];
  }
  std::vector<float> run(const kernels::Table& table, std::size_t first_token, std::size_t count) const {
    std::vector<float> y(count * rows, NAN);
    table.matmul_i8({.panels = panels.data(),
                     .panel_stride = 16 * cols,
                     .rows = rows,
                     .cols = cols,
                     .first_panel = 0,
                     .last_panel = kernels::panel_count(rows),
                     .x = &x[first_token * cols],
                     .x_stride = cols,
                     .tokens = count,
                     .y = y.data(),
                     .y_stride = rows});
    return y;
  }
};

// Weights from -128 to 127, all of them where there are as many.
Int8Product int8_product(const Size& size) {
  Int8Product product{size.rows, size.cols, size.tokens, {}, std::vector<float>(size.tokens * size.cols)};
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (float& number : product.x) number = normal(random);
  for (std::size_t i = 0; i < kernels::panel_count(size.rows) * 16 * size.cols; ++i) {
    product.panels.push_back(static_cast<std::int8_t>(37 * i % 256));
  }
  return product;
}

TEST_P(Int8Matmul, AgreesWithDoublePrecisionAndGivesABatchTheSameBitsAsSingleTokens) {
  for (const Size size :
       {Size{1, 1, 1}, {16, 32, 1}, {33, 32, 2}, {40, 16, 7}, {32, 700, 12}, {100, 32, 27}, {24, 513, 25}}) {
    const Int8Product product = int8_product(size);
    const std::vector<float> y = product.run(*GetParam(), 0, size.tokens);
    for (std::size_t t = 0; t < size.tokens; ++t) {
      for (std::size_t row = 0; row < size.rows; ++row) {
        double sum = 0, magnitude = 0;
        for (std::size_t col = 0; col < size.cols; ++col) {
          const double term = product.x[t * size.cols + col] * static_cast<double>(product.weight(row, col));
          sum += term;
          magnitude += std::fabs(term);
        }
        // |fl(sum) - sum| <= n epsilon sum |w x| (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1)
        ASSERT_NEAR(y[t * size.rows + row], sum, static_cast<double>(size.cols) * epsilon * magnitude)
            << "row " << row << ", token " << t << " of " << size.rows << " x " << size.cols;
      }
      const std::vector<float> alone = product.run(*GetParam(), t, 1);
      ASSERT_TRUE(std::equal(alone.begin(), alone.end(), &y[t * size.rows])) << "token " << t << " of " << size.tokens;
    }
  }
}

}  // namespace
}  // namespace minimind
