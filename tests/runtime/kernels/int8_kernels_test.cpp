#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/kernels/kernels.h"
#include "tests/runtime/kernels/random_floats.h"
#include "tests/support/epsilon.h"
#include "tests/support/tables.h"
#include "weights/tensor/half.h"

namespace minimind {
namespace {

using kernels::ActivationBlock;
using kernels::I8Block;

// The kernels of 8-bit integers, for every table that this machine can run.
class Int8Kernels : public testing::TestWithParam<const kernels::Table*> {};

INSTANTIATE_TEST_SUITE_P(EveryTable, Int8Kernels, testing::ValuesIn(tables()),
                         [](const auto& parameter) { return parameter.param->name; });

TEST_P(Int8Kernels, QuantizeRoundsToTheNearestOf255Steps) {
  std::vector<float> x = random_floats(96, 21, 3);
  std::fill_n(x.begin() + 32, 32, 0.0f);
  x[70] = 50;
  std::vector<ActivationBlock> blocks(3);
  GetParam()->quantize(x.data(), x.size(), blocks.data());
  for (std::size_t b = 0; b < 3; ++b) {
    float largest = 0;
    std::int32_t sum = 0, low_sum = 0;
    for (std::size_t i = 0; i < 32; ++i) {
      const float value = x[32 * b + i];
      largest = std::max(largest, std::fabs(value));
      sum += blocks[b].quant[i];
      if (i < 16) low_sum += blocks[b].quant[i];
      // Half a step, and the rounding of the quotient, of at most 127.
      EXPECT_NEAR(blocks[b].quant[i] * blocks[b].scale, value, (0.5 + 127 * 2 * epsilon) * blocks[b].scale);
    }
    EXPECT_EQ(blocks[b].scale, largest / 127);
    EXPECT_EQ(blocks[b].sum, sum);
    EXPECT_EQ(blocks[b].low_sum, low_sum);
    EXPECT_EQ(blocks[b].scaled_sum, blocks[b].scale * static_cast<float>(sum));
  }
}

TEST_P(Int8Kernels, QuantizeGivesNanIfAValueIsNotFinite) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (const std::size_t at : {0u, 13u, 31u}) {
      std::vector<float> x(32, 1.0f);
      x[at] = bad;
      ActivationBlock block;
      GetParam()->quantize(x.data(), x.size(), &block);
      EXPECT_TRUE(std::isnan(block.scale)) << bad << " at " << at;
    }
  }
}

// Smaller scales would be subnormal, and their inverses infinite.
TEST_P(Int8Kernels, QuantizeTurnsTinyBlocksIntoZeros) {
  const std::vector<float> x(32, 1e-31f);
  ActivationBlock block;
  GetParam()->quantize(x.data(), x.size(), &block);
  EXPECT_EQ(block.scale, 0);
  EXPECT_EQ(block.sum, 0);
}

bool equal(const ActivationBlock& a, const ActivationBlock& b) {
  return a.scale == b.scale && a.sum == b.sum && a.low_sum == b.low_sum && a.scaled_sum == b.scaled_sum &&
         std::ranges::equal(a.quant, b.quant);
}

TEST_P(Int8Kernels, QuantizePadsTheLastBlockWithZeros) {
  const std::vector<float> x = random_floats(64, 22);
  for (const std::size_t n : {1u, 16u, 33u, 63u}) {
    std::vector<float> padded(x.begin(), x.begin() + n);
    padded.resize(kernels::block_count(n) * 32);
    std::vector<ActivationBlock> blocks(kernels::block_count(n)), of_padded(blocks.size());
    GetParam()->quantize(x.data(), n, blocks.data());
    GetParam()->quantize(padded.data(), padded.size(), of_padded.data());
    EXPECT_TRUE(std::ranges::equal(blocks, of_padded, equal)) << n;
  }
}

TEST_P(Int8Kernels, QuantizeScaledRoundsTheProducts) {
  const std::vector<float> x = random_floats(100, 23), y = random_floats(100, 24);
  std::vector<F16> scale;
  for (const float number : y) scale.push_back(to_f16(number));
  for (const std::size_t n : {1u, 32u, 77u, 100u}) {
    std::vector<float> products(n);
    for (std::size_t i = 0; i < n; ++i) products[i] = x[i] * to_f32(scale[i]);
    std::vector<ActivationBlock> blocks(kernels::block_count(n)), of_products(blocks.size());
    GetParam()->quantize_scaled(x.data(), scale.data(), n, blocks.data());
    GetParam()->quantize(products.data(), n, of_products.data());
    EXPECT_TRUE(std::ranges::equal(blocks, of_products, equal)) << n;
  }
}

struct BlockSize {
  std::size_t rows, blocks, tokens;
};

// Panels like those of values in a KV cache: after each panel the stride skips as many blocks as it has.
struct Int8Product {
  BlockSize size;
  std::vector<I8Block> panels;
  std::vector<ActivationBlock> x;

  std::int8_t weight(std::size_t row, std::size_t col) const {
    return panels[row / 16 * 2 * size.blocks + col / 32].quant[col % 32 / 4][row % 16][col % 4];
  }
  std::vector<float> run(const kernels::Table& table, std::size_t first_token, std::size_t count) const {
    std::vector<float> y(count * size.rows, NAN);
    table.matmul(kernels::BlockMatmul<I8Block>{.panels = panels.data(),
                                               .panel_stride = 2 * size.blocks,
                                               .rows = size.rows,
                                               .cols = 32 * size.blocks,
                                               .first_panel = 0,
                                               .last_panel = kernels::panel_count(size.rows),
                                               .x = &x[first_token * size.blocks],
                                               .x_stride = size.blocks,
                                               .tokens = count,
                                               .y = y.data(),
                                               .y_stride = size.rows});
    return y;
  }
};

// Weights from -128 to 127.
Int8Product int8_product(const BlockSize& size, const kernels::Table& table) {
  Int8Product product{size, std::vector<I8Block>(kernels::panel_count(size.rows) * 2 * size.blocks),
                      std::vector<ActivationBlock>(size.tokens * size.blocks)};
  int next = 0;
  for (I8Block& block : product.panels) {
    for (auto& group : block.quant) {
      for (auto& row : group) {
        for (std::int8_t& quant : row) quant = static_cast<std::int8_t>(37 * next++ % 256);
      }
    }
  }
  const std::vector<float> x = random_floats(32 * product.x.size(), 1);
  table.quantize(x.data(), x.size(), product.x.data());
  return product;
}

TEST_P(Int8Kernels, MatmulAgreesWithDoublePrecision) {
  for (const BlockSize size : {BlockSize{1, 1, 1},
                               {16, 1, 1},
                               {33, 1, 2},
                               {40, 3, 7},
                               {32, 22, 12},
                               {100, 1, 27},
                               {24, 17, 25},
                               {24, 2, 9},
                               {40, 33, 17},
                               {32, 3, 18},
                               {16, 1, 65},
                               {33, 2, 67}}) {
    const Int8Product product = int8_product(size, *GetParam());
    const std::vector<float> y = product.run(*GetParam(), 0, size.tokens);
    for (std::size_t t = 0; t < size.tokens; ++t) {
      for (std::size_t row = 0; row < size.rows; ++row) {
        double sum = 0, magnitude = 0;
        for (std::size_t block = 0; block < size.blocks; ++block) {
          const ActivationBlock& x = product.x[t * size.blocks + block];
          std::int32_t of_block = 0;
          for (std::size_t i = 0; i < 32; ++i) of_block += x.quant[i] * product.weight(row, 32 * block + i);
          sum += static_cast<double>(x.scale) * of_block;
          magnitude += std::fabs(static_cast<double>(x.scale) * of_block);
        }
        // The sum of a block is exact. For the sum over blocks, |fl(sum) - sum| <= n epsilon sum |terms| (Higham,
        // Accuracy and Stability of Numerical Algorithms, section 3.1).
        ASSERT_NEAR(y[t * size.rows + row], sum, static_cast<double>(size.blocks) * epsilon * magnitude)
            << "row " << row << ", token " << t << " of " << size.rows << " x " << size.blocks << " blocks";
      }
      const std::vector<float> alone = product.run(*GetParam(), t, 1);
      ASSERT_TRUE(std::equal(alone.begin(), alone.end(), &y[t * size.rows])) << "token " << t << " of " << size.tokens;
    }
  }
}

}  // namespace
}  // namespace minimind
