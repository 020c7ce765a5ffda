#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "runtime/kernels/all_instruction_sets.h"
#include "runtime/kernels/instruction_sets.h"
#include "tests/runtime/kernels/random_floats.h"
#include "tests/support/epsilon.h"
#include "tests/support/packed.h"
#include "tests/support/stored.h"
#include "tests/support/tables.h"

namespace minimind {
namespace {

// These tests run for all products of bf16 that this machine can run.
class Bf16Kernels : public testing::Test {
 protected:
  void SetUp() override {
    if (tables_.empty()) GTEST_SKIP() << "this machine has no products of bf16";
  }
  const std::vector<kernels::Table> tables_ = bf16_tables();
};

WeightMatrix packed_for_bf16(const std::vector<float>& values, std::size_t rows, std::size_t cols) {
  return pack(f32_tensor({rows, cols}, values), DType::bf16, 1, Compute::bf16);
}

std::size_t padded(std::size_t cols) {
  return kernels::block_count(cols) * kernels::block_cols;
}

std::vector<Bf16> rounded_rows(const kernels::Table& table, const std::vector<float>& x, std::size_t cols) {
  std::vector<Bf16> out(x.size() / cols * padded(cols), Bf16{0x7FC0});
  for (std::size_t t = 0; t < x.size() / cols; ++t) table.bf16->round(&x[t * cols], cols, &out[t * padded(cols)]);
  return out;
}

std::vector<float> bf16_product(const kernels::Table& table, const WeightMatrix& matrix, const std::vector<float>& x) {
  const std::size_t n = matrix.cols(), m = matrix.rows(), tokens = x.size() / n;
  const std::vector<Bf16> values = rounded_rows(table, x, n);
  std::vector<float> y(tokens * m, NAN);
  const Activations activations{
      .exact = {x.data(), tokens, n},
      .rounded = {reinterpret_cast<const std::byte*>(values.data()), tokens, padded(n) * sizeof(Bf16)}};
  matmul(table, matrix, {0, kernels::panel_count(m)}, activations, Matrix<float>{y.data(), tokens, m});
  return y;
}

// Of the rounded inputs: n sums of exact products, each rounded once, and one or two roundings more for each block of
// 32, as in kernels_test.cpp.
TEST_F(Bf16Kernels, AgreeWithDoublePrecision) {
  struct Size {
    std::size_t rows, cols, tokens;
  };
  for (const kernels::Table& table : tables_) {
    for (const Size size : {Size{1, 1, 1},
                            {16, 7, 1},
                            {33, 50, 3},
                            {96, 64, 1},
                            {100, 96, 9},
                            {130, 160, 17},
                            {40, 608, 45},
                            {70, 95, 64},
                            {257, 65, 33}}) {
      const std::vector<float> w = random_floats(size.rows * size.cols, 1);
      const std::vector<float> x = random_floats(size.tokens * size.cols, 2);
      const std::vector<float> y = bf16_product(table, packed_for_bf16(w, size.rows, size.cols), x);
      for (std::size_t r = 0; r < size.rows; ++r) {
        for (std::size_t t = 0; t < size.tokens; ++t) {
          double sum = 0, magnitude = 0;
          for (std::size_t c = 0; c < size.cols; ++c) {
            const double term = static_cast<double>(to_f32(to_bf16(w[r * size.cols + c]))) *
                                static_cast<double>(to_f32(to_bf16(x[t * size.cols + c])));
            sum += term;
            magnitude += std::fabs(term);
          }
          const double bound = static_cast<double>(size.cols + 3) * epsilon * magnitude;
          ASSERT_NEAR(y[t * size.rows + r], sum, bound)
              << table.bf16->name << ", row " << r << ", token " << t << " of " << size.rows << " x " << size.cols;
        }
      }
    }
  }
}

// Tiny values become subnormal products and sums; large ones differ in magnitude, so that the order of the sums shows.
TEST_F(Bf16Kernels, ABatchOfAnySizeHasTheBitsOfSingleTokens) {
  constexpr std::size_t rows = 83, most = 64;
  for (const std::size_t n : {65u, 768u}) {
    std::mt19937 random(3);
    std::vector<float> w = random_floats(rows * n, 4), x = random_floats(most * n, 5);
    const std::vector<float> scales{1, 1, 1000, 1e-20f, 1e-38f, 1e-40f, 0};
    for (float& value : w) value *= scales[random() % scales.size()];
    for (float& value : x) value *= scales[random() % scales.size()];
    for (std::size_t i = 0; i < n; ++i) {
      x[7 * n + i] *= 1e-19f;  // a token whose products are all tiny
      w[5 * n + i] *= 1e-19f;
    }
    const WeightMatrix matrix = packed_for_bf16(w, rows, n);
    for (const kernels::Table& table : tables_) {
      std::vector<float> alone;
      for (std::size_t t = 0; t < most; ++t) {
        const std::vector<float> y = bf16_product(table, matrix, {&x[t * n], &x[t * n] + n});
        alone.insert(alone.end(), y.begin(), y.end());
      }
      for (std::size_t tokens = 2; tokens <= most; ++tokens) {
        const std::vector<float> batch = bf16_product(table, matrix, {x.begin(), x.begin() + tokens * n});
        ASSERT_EQ(std::memcmp(batch.data(), alone.data(), batch.size() * sizeof(float)), 0)
            << table.bf16->name << ", " << tokens << " tokens of " << n << " columns";
      }
    }
  }
}

TEST_F(Bf16Kernels, WriteOnlyTheRequestedPanels) {
  constexpr std::size_t rows = 82, cols = 32;
  const WeightMatrix matrix = packed_for_bf16(random_floats(rows * cols, 6), rows, cols);
  for (const kernels::Table& table : tables_) {
    for (const std::size_t tokens : {1u, 2u, 20u, 40u}) {
      const std::vector<float> x = random_floats(tokens * cols, 7);
      const std::vector<Bf16> values = rounded_rows(table, x, cols);
      const Activations activations{
          .exact = {x.data(), tokens, cols},
          .rounded = {reinterpret_cast<const std::byte*>(values.data()), tokens, cols * sizeof(Bf16)}};
      for (const Range panels : {Range{1, 3}, Range{3, 6}, Range{2, 2}}) {
        std::vector<float> y(tokens * rows, 77.0f);
        matmul(table, matrix, panels, activations, Matrix<float>{y.data(), tokens, rows});
        for (std::size_t i = 0; i < y.size(); ++i) {
          const std::size_t row = i % rows;
          const bool requested = row >= 16 * panels.begin && row < 16 * panels.end;
          ASSERT_EQ(y[i] != 77.0f, requested) << table.bf16->name << ", row " << row << ", " << tokens << " tokens";
        }
      }
    }
  }
}

TEST_F(Bf16Kernels, RoundToTheNearestAndPadWithZeros) {
  std::vector<float> x{0.0f, -0.0f, 3.3e38f, std::numeric_limits<float>::max(), INFINITY, -INFINITY};
  for (std::uint32_t i = 0; i < 1 << 16; ++i) {  // each, the middle to the next one, and the middle's neighbour
    const float value = to_f32(Bf16{static_cast<std::uint16_t>(i)});
    const float middle = std::bit_cast<float>(i << 16 | 0x8000u);
    if (!std::isfinite(value) || std::fabs(value) < std::numeric_limits<float>::min()) continue;
    x.insert(x.end(), {value, middle, std::nextafter(middle, value)});
  }
  for (const kernels::Table& table : tables_) {
    for (const std::size_t n : {x.size(), std::size_t{1}, std::size_t{31}, std::size_t{33}}) {
      const std::vector<Bf16> out = rounded_rows(table, {x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n)}, n);
      ASSERT_EQ(out.size(), padded(n));
      for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i].bits, i < n ? to_bf16(x[i]).bits : 0) << i;
    }
    EXPECT_TRUE(std::isnan(to_f32(rounded_rows(table, {NAN}, 1)[0])));
    EXPECT_EQ(to_f32(rounded_rows(table, {1e-40f}, 1)[0]), 0) << "below the smallest normal float";
  }
}

TEST_F(Bf16Kernels, NotFiniteInputsReachOnlyTheirToken) {
  constexpr std::size_t rows = 20, cols = 64, tokens = 18;
  const WeightMatrix matrix = packed_for_bf16(random_floats(rows * cols, 8), rows, cols);
  std::vector<float> x = random_floats(tokens * cols, 9);
  x[17 * cols + 40] = INFINITY;
  x[2 * cols + 3] = NAN;
  for (const kernels::Table& table : tables_) {
    const std::vector<float> y = bf16_product(table, matrix, x);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t token = i / rows;
      ASSERT_EQ(std::isfinite(y[i]), token != 2 && token != 17) << table.bf16->name << ", token " << token;
    }
  }
}

TEST(Bf16Tables, AreOnlyTheBestTable) {
  for (const kernels::Table* table : tables()) {
    EXPECT_EQ(table->bf16, nullptr) << table->name;
    const kernels::Table* const with = kernels::with_bf16(*table);
    ASSERT_EQ(with != nullptr, table == tables().front() && kernels::runnable_bf16().count > 0) << table->name;
    if (!with) continue;
    EXPECT_EQ(with->bf16, kernels::runnable_bf16().products[0]);
    EXPECT_EQ(with->matmul_f32, table->matmul_f32);
  }
}

}  // namespace
}  // namespace minimind
