#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "runtime/kernels/blocks.h"
#include "tests/runtime/kernels/products.h"
#include "tests/runtime/kernels/random_floats.h"
#include "tests/support/packed.h"
#include "tests/support/random_blocks.h"
#include "tests/support/tables.h"

namespace minimind {
namespace {

class PartKernels : public testing::TestWithParam<const kernels::Table*> {
 protected:
  const kernels::Table& table() const { return *GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(EveryTable, PartKernels, testing::ValuesIn(tables()),
                         [](const auto& parameter) { return parameter.param->name; });

// Returns `blocks` blocks of 32 columns, or the next whole blocks of 256.
std::size_t whole_blocks(DType type, std::size_t blocks) {
  const std::size_t size = block_shape(type).elements;
  return (32 * blocks + size - 1) / size * size;
}

TEST_P(PartKernels, MatmulOfEveryTypeAgreesWithDoublePrecisionAndTheBestTable) {
  struct PartSize {
    std::size_t rows, blocks, tokens;
  };
  for (const DType type : part_types) {
    for (const PartSize size : {PartSize{1, 1, 1}, {16, 7, 2}, {33, 8, 3}, {100, 9, 1}, {49, 19, 9}, {130, 24, 17}}) {
      const StoredTensor tensor = random_blocks(type, size.rows, whole_blocks(type, size.blocks), 31);
      const WeightMatrix minima = pack(minima_of_blocks(tensor), {}, 1);
      const std::vector<float> x = random_floats(size.tokens * tensor.shape[1], 32);
      SCOPED_TRACE(name_of(type));
      const WeightMatrix matrix = pack(tensor, {}, 1);
      expect_product(table(), matrix, x, &minima);
      expect_bits_of_best_table(table(), matrix, x);
    }
  }
}

// 83 rows are an odd number of panels, whose last one is not full; 608 columns an odd number of strips.
TEST_P(PartKernels, MatmulOfABatchEqualsSingleTokens) {
  constexpr std::size_t rows = 83, most = 13;
  for (const DType type : part_types) {
    const WeightMatrix matrix = pack(random_blocks(type, rows, whole_blocks(type, 19), 33), {}, 1);
    const std::size_t columns = matrix.cols();
    const std::vector<float> x = random_floats(most * columns, 34);
    for (std::size_t tokens = 2; tokens <= most; ++tokens) {
      const std::vector<float> batch = product(table(), matrix, {x.begin(), x.begin() + tokens * columns});
      for (const std::size_t t : {std::size_t{0}, tokens / 2, tokens - 1}) {
        const std::vector<float> alone = product(table(), matrix, {&x[t * columns], &x[t * columns] + columns});
        ASSERT_TRUE(std::equal(alone.begin(), alone.end(), &batch[t * rows]))
            << name_of(type) << ", token " << t << " of " << tokens;
      }
    }
  }
}

// The products of one sign of all codes, scales and activations, without a minimum: sums of integers, times a power of
// two, which floats represent exactly.
TEST_P(PartKernels, SumsOfTheLargestIntegersDoNotSaturate) {
  constexpr std::size_t rows = 16, columns = 256;
  for (const DType type : part_types) {
    const CodeRanges ranges = code_ranges(type);
    for (const int code : {ranges.codes.lowest, ranges.codes.highest}) {
      for (const int scale : {ranges.scales.lowest, ranges.scales.highest}) {
        BlockCodes codes{};
        codes.scale = to_f16(1);
        std::fill(std::begin(codes.part_scales), std::end(codes.part_scales), static_cast<std::int8_t>(scale));
        std::fill(std::begin(codes.part_minima), std::end(codes.part_minima), static_cast<std::uint8_t>(1));
        std::fill(std::begin(codes.codes), std::end(codes.codes), static_cast<std::int8_t>(code));
        const WeightMatrix matrix = pack(matrix_of_blocks(type, rows, columns, [&] { return codes; }), {}, 1);
        for (const float x : {-127.0f, 127.0f}) {
          for (const std::size_t tokens : {1u, 2u}) {
            const std::vector<float> y = product(table(), matrix, std::vector<float>(tokens * columns, x));
            const float expected = x * static_cast<float>(code * scale) * columns;
            EXPECT_EQ(y, std::vector<float>(tokens * rows, expected))
                << name_of(type) << ", " << code << " x " << scale;
          }
        }
      }
    }
  }
}

TEST_P(PartKernels, RowsWithAScaleThatIsNotFiniteHaveNoFiniteProduct) {
  for (const DType type : part_types) {
    for (const F16 scale : {F16{0x7C00}, F16{0xFC00}, F16{0x7E01}}) {
      std::mt19937 random(35);
      std::size_t row = 0;
      const StoredTensor tensor = matrix_of_blocks(type, 20, 256, [&] {
        BlockCodes codes = random_codes(type, random, 1);
        if (row++ / (256 / block_shape(type).elements) == 17) codes.scale = scale;
        return codes;
      });
      const WeightMatrix matrix = pack(tensor, {}, 1);
      for (const std::size_t tokens : {1u, 3u}) {
        const std::vector<float> y = product(table(), matrix, random_floats(tokens * 256, 36));
        for (std::size_t i = 0; i < y.size(); ++i) {
          EXPECT_EQ(std::isfinite(y[i]), i % 20 != 17) << name_of(type) << ", row " << i % 20;
        }
      }
    }
  }
}

TEST_P(PartKernels, MatmulWritesOnlyTheRequestedPanels) {
  constexpr std::size_t rows = 70;
  for (const DType type : part_types) {
    const WeightMatrix matrix = pack(random_blocks(type, rows, 256, 37), {}, 1);
    const std::vector<float> x = random_floats(3 * 256, 38);
    for (const std::size_t tokens : {1u, 3u}) {
      const Input input(table(), matrix, {x.begin(), x.begin() + tokens * 256});
      for (const Range panels : {Range{1, 2}, {1, 3}, {1, 4}, {2, 5}}) {
        std::vector<float> y(tokens * rows, 77.0f);
        matmul(table(), matrix, panels, input.activations(), Matrix<float>{y.data(), tokens, rows});
        for (std::size_t i = 0; i < y.size(); ++i) {
          const std::size_t panel = i % rows / 16;
          EXPECT_EQ(y[i] == 77.0f, panel < panels.begin || panel >= panels.end) << name_of(type) << ", " << i;
        }
      }
    }
  }
}

template <class Block>
void expect_continued_sum(const kernels::Table& table) {
  constexpr std::size_t rows = 40, columns = 768, first = 256, tokens = 3;
  const WeightMatrix matrix = pack(random_blocks(Block::stored_type, rows, columns, 39), {}, 1);
  const Panels<Block> packed = panels_of<Block>(matrix);
  const std::vector<float> x = random_floats(tokens * columns, 40);
  const std::vector<float> expected = product(table, matrix, x);
  const Input input(table, matrix, x);
  const auto blocks = rounded_as<kernels::ActivationBlock>(input.activations());
  for (const std::size_t count : {std::size_t{1}, tokens}) {
    std::vector<float> y(count * rows, NAN);
    kernels::BlockMatmul<Block> m{packed.data, packed.stride, rows,  first,    0,   packed.all().end,
                                  blocks.data, blocks.cols,   count, y.data(), rows};
    table.matmul(m);
    m.panels += elements_of<Block>(first);
    m.x += first / kernels::block_cols;
    m.cols = columns - first;
    m.continues = true;
    table.matmul(m);
    EXPECT_TRUE(std::equal(y.begin(), y.end(), expected.begin())) << name_of(Block::stored_type) << ", " << count;
  }
}

template <class... Blocks>
void expect_continued_sums(const kernels::Table& table, const kernels::ProductsOf<Blocks...>&) {
  (expect_continued_sum<Blocks>(table), ...);
}

// The columns of a product in two steps of whole strips are added in the same order.
TEST_P(PartKernels, ContinuesASum) {
  expect_continued_sums(table(), kernels::BlockProducts{});
}

}  // namespace
}  // namespace minimind
