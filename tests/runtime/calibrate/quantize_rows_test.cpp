#include "runtime/calibrate/quantize_rows.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/kernels/instruction_sets.h"
#include "weights/tensor/block_codes.h"
#include "weights/tensor/block_formats.h"

namespace minimind {
namespace {

using Values = std::vector<float>;

constexpr DType types[] = {DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::iq4_nl,
                           DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k, DType::iq4_xs};

// Moments of inputs whose columns depend on each other: each is its own noise plus a few common factors.
SecondMoments correlated_moments(std::size_t cols, std::size_t tokens) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  SecondMoments moments;
  moments.cols = cols;
  moments.tokens = tokens;
  moments.inputs.resize(cols * cols);
  constexpr std::size_t factors = 8;
  Values mix(factors * cols);
  for (float& x : mix) x = normal(random);
  for (std::size_t t = 0; t < tokens; ++t) {
    Values x(cols), common(factors);
    for (float& f : common) f = normal(random);
    for (std::size_t i = 0; i < cols; ++i) {
      x[i] = 0.3f * normal(random);
      for (std::size_t f = 0; f < factors; ++f) x[i] += common[f] * mix[f * cols + i];
    }
    for (std::size_t i = 0; i < cols; ++i) {
      for (std::size_t j = 0; j < cols; ++j) moments.inputs[i * cols + j] += x[i] * x[j];
    }
  }
  return moments;
}

class QuantizeRows : public testing::Test {
 protected:
  static constexpr std::size_t rows = 70, cols = 512;

  QuantizeRows() : values_(rows * cols) {
    std::mt19937 random(4);
    std::normal_distribution<float> normal;
    for (float& value : values_) value = 0.05f * normal(random);
  }

  QuantizedRows quantize(DType type, int rounds = 2, std::size_t threads = 1) const {
    return quantize_rows(type, {values_.data(), rows, cols}, metric_, rounds, kernels::choose(), threads);
  }

  // e H eᵀ of each row, summed.
  double error_of(DType type, const std::vector<std::byte>& blocks) const {
    Values decoded(values_.size());
    dequantize(type, blocks.data(), decoded.size(), decoded.data());
    double sum = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      const auto e = [&](std::size_t i) {
        return static_cast<double>(values_[row * cols + i]) - static_cast<double>(decoded[row * cols + i]);
      };
      for (std::size_t i = 0; i < cols; ++i) {
        double of_column = 0;
        for (std::size_t j = 0; j < cols; ++j) of_column += e(j) * static_cast<double>(metric_.at(i, j));
        sum += e(i) * of_column;
      }
    }
    return sum;
  }

  Values values_;
  ErrorMetric metric_{correlated_moments(cols, 1024), 0.01, 1};
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
  for (const DType type : {DType::iq4_nl, DType::q6_k, DType::q4_1}) {
    EXPECT_EQ(quantize(type, 1, 1).blocks, quantize(type, 1, 3).blocks) << name_of(type);
  }
}

TEST_F(QuantizeRows, KeepsZeros) {
  std::fill(values_.begin(), values_.end(), 0.0f);
  for (const DType type : types) EXPECT_EQ(sum_of(quantize(type).errors), 0) << name_of(type);
}

TEST(ErrorMetric, FactorsTheMoments) {
  const SecondMoments moments = correlated_moments(80, 200);
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
