#include "runtime/calibrate/quantize_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "runtime/calibrate/calibration.h"
#include "runtime/kernels/instruction_sets.h"
#include "weights/tensor/block_codes.h"
#include "weights/tensor/block_formats.h"

namespace minimind {
namespace {

using Values = std::vector<float>;

const std::vector<DType> types = [] {
  std::vector<DType> all;
  for (const DTypeRow& row : dtype_rows) {
    if (can_calibrate(row.type, row.block.elements)) all.push_back(row.type);
  }
  return all;
}();

// Expected moments of inputs whose columns depend on each other: each is its own noise plus a few common factors.
SecondMoments correlated_moments(std::size_t cols) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  constexpr std::size_t factors = 8;
  Values mix(cols * factors);
  for (float& x : mix) x = normal(random);
  SecondMoments moments;
  moments.cols = cols;
  moments.tokens = 4 * cols;
  moments.inputs.resize(cols * cols);
  for (std::size_t i = 0; i < cols; ++i) {
    moments.inputs[i * cols + i] = 0.1f;
    for (std::size_t j = 0; j < cols; ++j) {
      for (std::size_t f = 0; f < factors; ++f) {
        moments.inputs[i * cols + j] += mix[i * factors + f] * mix[j * factors + f];
      }
    }
  }
  return moments;
}

class QuantizeRows : public testing::Test {
 protected:
  // Two blocks of the k-quants, and rows that do not fill the last vector.
  static constexpr std::size_t rows = 12, cols = 512;

  QuantizeRows() : values_(rows * cols) {
    std::mt19937 random(4);
    std::normal_distribution<float> normal;
    for (float& value : values_) value = 0.05f * normal(random);
  }

  QuantizedRows quantize(DType type, int rounds = 2) const {
    return quantize_rows(type, {values_.data(), rows, cols}, metric_, rounds, kernels::choose(), 1);
  }

  // e H eᵀ of each row, summed.
  double error_of(DType type, const std::vector<std::byte>& blocks) const {
    Values errors(values_.size());
    dequantize(type, blocks.data(), errors.size(), errors.data());
    for (std::size_t i = 0; i < errors.size(); ++i) errors[i] = values_[i] - errors[i];
    const auto error = [&](std::size_t row, std::size_t k) {
      return static_cast<double>(errors[row * cols + metric_.columns()[k]]);
    };
    double sum = 0;
    for (std::size_t i = 0; i < cols; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        double product = 0;
        for (std::size_t row = 0; row < rows; ++row) product += error(row, i) * error(row, j);
        sum += (i == j ? 1 : 2) * product * static_cast<double>(metric_.at(i, j));
      }
    }
    return sum;
  }

  Values values_;
  ErrorMetric metric_{correlated_moments(cols), 0.01, 1};
};

double sum_of(const Values& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value);
  return sum;
}

TEST_F(QuantizeRows, HalvesTheErrorOfPlainRounding) {
  for (const DType type : types) {
    if (!can_quantize(type)) continue;
    std::vector<std::byte> plain(rows * cols / block_shape(type).elements * block_shape(type).bytes);
    minimind::quantize(type, values_.data(), values_.size(), plain.data());
    EXPECT_LT(error_of(type, quantize(type).blocks), 0.5 * error_of(type, plain)) << name_of(type);
  }
}

TEST_F(QuantizeRows, ReportsTheErrorsOfItsBlocks) {
  for (const DType type : types) {
    const QuantizedRows result = quantize(type);
    const double expected = error_of(type, result.blocks);
    EXPECT_NEAR(sum_of(result.errors), expected, 1e-2 * expected) << name_of(type);
  }
}

TEST_F(QuantizeRows, CoordinateDescentLowersTheErrors) {
  for (const DType type : types) {
    EXPECT_LT(sum_of(quantize(type, 1).errors), sum_of(quantize(type, 0).errors)) << name_of(type);
    EXPECT_LE(sum_of(quantize(type, 3).errors), sum_of(quantize(type, 1).errors)) << name_of(type);
  }
}

TEST_F(QuantizeRows, GivesTheSameBytesForAnyNumberOfThreads) {
  Values many;  // more rows than a thread quantises at once
  for (int copy = 0; copy < 8; ++copy) many.insert(many.end(), values_.begin(), values_.end());
  const auto blocks = [&](DType type, std::size_t threads) {
    return quantize_rows(type, {many.data(), 8 * rows, cols}, metric_, 1, kernels::choose(), threads).blocks;
  };
  for (const DType type : {DType::iq4_nl, DType::q6_k}) EXPECT_EQ(blocks(type, 1), blocks(type, 3)) << name_of(type);
}

TEST_F(QuantizeRows, KeepsZeros) {
  std::fill(values_.begin(), values_.end(), 0.0f);
  for (const DType type : types) EXPECT_EQ(sum_of(quantize(type).errors), 0) << name_of(type);
}

TEST(ErrorMetric, FactorsTheMoments) {
  const SecondMoments moments = correlated_moments(80);
  const ErrorMetric metric(moments, 0.01, 2);
  const auto upper = [&](std::size_t i, std::size_t k) {
    return i == k ? 1.0 : i < k ? static_cast<double>(metric.feedback(i, k)) : 0.0;
  };
  for (std::size_t i = 0; i < 80; ++i) {
    for (std::size_t j = 0; j < 80; ++j) {
      double product = 0;
      for (std::size_t k = 0; k < 80; ++k)
        product += upper(i, k) * static_cast<double>(metric.pivots()[k]) * upper(j, k);
      ASSERT_NEAR(product, static_cast<double>(metric.at(i, j)), 1e-4) << i << ' ' << j;
    }
  }
}

TEST(ErrorMetric, StartsWithTheLargestDiagonalAndKeepsBlocksTogether) {
  for (const std::size_t cols : {512u, 416u, 80u}) {
    SecondMoments moments = correlated_moments(cols);
    moments.inputs[40 * cols + 40] += 1e6f;
    const std::vector<std::size_t> columns = ErrorMetric(moments, 0.01, 1).columns();
    EXPECT_EQ(columns.front(), 32u) << cols;
    std::vector<std::size_t> sorted = columns;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < cols; ++i) EXPECT_EQ(sorted[i], i) << cols;
    const std::size_t block = cols % 256 == 0 ? 256 : 32;
    for (std::size_t i = 0; i < cols; ++i) EXPECT_EQ(columns[i] / block, columns[i / block * block] / block) << cols;
    if (cols == 416) {
      EXPECT_FALSE(std::is_sorted(columns.begin(), columns.end()));
    }
  }
}

TEST(ErrorMetric, IsTheSumOfSquaresWithoutMoments) {
  SecondMoments moments;
  moments.cols = 32;
  moments.inputs.resize(32 * 32);
  const ErrorMetric metric(moments, 0.01, 1);
  EXPECT_EQ(metric.at(3, 3), 1);
  EXPECT_EQ(metric.at(3, 4), 0);
  EXPECT_EQ(metric.feedback(3, 4), 0);
}

}  // namespace
}  // namespace minimind
