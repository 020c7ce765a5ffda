#include "runtime/kernels/kernels.h"
#include "runtime/kernels/instruction_sets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <stdexcept>
#include <variant>
#include <vector>

#include "runtime/engine/packed_matrix.h"
#include "tests/runtime/kernels/products.h"
#include "tests/runtime/kernels/random_floats.h"
#include "tests/support/epsilon.h"
#include "tests/support/packed.h"
#include "tests/support/stored.h"
#include "tests/support/tables.h"
#include "weights/model/hidden_act.h"
#include "weights/tensor/dtype.h"

namespace minimind {
namespace {

// These tests run for every table that this machine can run.
class Kernels : public testing::TestWithParam<const kernels::Table*> {
 protected:
  const kernels::Table& table() const { return *GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(EveryTable, Kernels, testing::ValuesIn(tables()),
                         [](const auto& parameter) { return parameter.param->name; });

// A stored row-major matrix of the given type.
StoredTensor stored(const std::vector<float>& values, std::size_t rows, std::size_t cols, DType type) {
  std::vector<std::byte> bytes(rows * cols * size_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == DType::f32) std::memcpy(bytes.data() + 4 * i, &values[i], 4);
    const std::uint16_t half = type == DType::f16 ? to_f16(values[i]).bits : to_bf16(values[i]).bits;
    if (type != DType::f32) std::memcpy(bytes.data() + 2 * i, &half, 2);
  }
  return {.dtype = type, .shape = {rows, cols}, .data = StoredBytes(std::move(bytes)), .file = "test"};
}

struct Size {
  std::size_t rows, cols, tokens;
};

TEST_P(Kernels, MatmulOfEveryTypeAgreesWithDoublePrecisionAndTheBestTable) {
  for (const Size size :
       {Size{1, 1, 1}, {16, 7, 1}, {33, 50, 3}, {96, 64, 1}, {100, 96, 9}, {130, 160, 17}, {40, 608, 25}}) {
    const std::vector<float> w = random_floats(size.rows * size.cols, 1);
    const std::vector<float> x = random_floats(size.tokens * size.cols, 2);
    for (const DType from : {DType::f32, DType::f16, DType::bf16}) {
      for (const WeightType type :
           std::initializer_list<WeightType>{std::nullopt, DType::q8_0, DType::q4_0, DType::iq4_nl}) {
        const WeightMatrix matrix = pack(stored(w, size.rows, size.cols, from), type, 1);
        expect_product(table(), matrix, x);
        expect_bits_of_best_table(table(), matrix, x);
      }
    }
  }
}

// One row for each quant and scale that a file may contain, -128 and infinite scales included.
TEST_P(Kernels, EveryQuantOfABlockIsMultipliedByItsScale) {
  constexpr std::size_t rows = 256, cols = 32;
  for (const DType type : {DType::q8_0, DType::q4_0, DType::iq4_nl}) {
    std::string bytes;
    for (std::size_t row = 0; row < rows; ++row) {
      const auto scale = static_cast<std::uint16_t>(row == 7 ? 0x7C00 : 257 * row & 0xBFFF);
      bytes += little_endian(scale) + std::string(block_shape(type).bytes - 2, static_cast<char>(row));
    }
    const WeightMatrix matrix = pack(make_tensor(type, {rows, cols}, bytes), {}, 1);
    std::vector<float> row(cols);
    for (std::size_t col = 0; col < cols; ++col) {
      std::vector<float> x(cols);
      x[col] = 127;  // rounds to 8 bits as 127 times 1
      const std::vector<float> y = product(table(), matrix, x);
      for (std::size_t r = 0; r < rows; ++r) {
        read_row(matrix, r, row.data());
        if (std::isinf(row[col])) {
          EXPECT_FALSE(std::isfinite(y[r])) << "and 0 times it is NaN";
        } else {
          // Two roundings here, one in the weight.
          const double exact = 127 * static_cast<double>(row[col]);
          ASSERT_NEAR(y[r], exact, 3 * epsilon * std::fabs(exact))
              << name_of(type) << ", row " << r << ", column " << col;
        }
      }
    }
  }
}

// Stored quants reach -128 and activations 127: instructions that saturate at 16 bits must not saturate here.
TEST_P(Kernels, SumsOfTheLargestQuantsDoNotSaturate) {
  constexpr std::size_t rows = 16, cols = 64;
  for (const int quant : {-128, 127}) {
    std::string bytes;
    for (std::size_t i = 0; i < rows * cols / 32; ++i) {
      bytes += little_endian(to_f16(1).bits) + std::string(32, static_cast<char>(quant));
    }
    const WeightMatrix matrix = pack(make_tensor(DType::q8_0, {rows, cols}, bytes), {}, 1);
    for (const float x : {-127.0f, 127.0f}) {
      const std::vector<float> y = product(table(), matrix, std::vector<float>(cols, x));
      EXPECT_EQ(y, std::vector<float>(rows, x * static_cast<float>(quant) * cols));
    }
  }
}

TEST_P(Kernels, MatmulOfABatchEqualsSingleTokens) {
  constexpr std::size_t rows = 83, cols = 608, most = 30;
  const std::vector<float> w = random_floats(rows * cols, 3);
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::iq4_nl}) {
    const WeightMatrix matrix = pack(stored(w, rows, cols, DType::f32), type, 1);
    const std::vector<float> x = random_floats(most * cols, 4);
    for (std::size_t tokens = 2; tokens <= most; ++tokens) {
      const std::vector<float> batch = product(table(), matrix, {x.begin(), x.begin() + tokens * cols});
      for (const std::size_t t : {std::size_t{0}, tokens / 2, tokens - 1}) {
        const std::vector<float> alone = product(table(), matrix, {&x[t * cols], &x[t * cols] + cols});
        ASSERT_TRUE(std::equal(alone.begin(), alone.end(), &batch[t * rows])) << "token " << t << " of " << tokens;
      }
    }
  }
}

// Large matrices are read from memory in another order of panels.
TEST_P(Kernels, RowsOfALargeMatrixEqualThoseOfASmallOne) {
  constexpr std::size_t rows = 450, cols = 608, few = 83, most = 7;
  const std::vector<float> w = random_floats(rows * cols, 11), x = random_floats(most * cols, 12);
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::q8_0}) {
    const WeightMatrix large = pack(stored(w, rows, cols, DType::f32), type, 1);
    const WeightMatrix small = pack(stored({w.begin(), w.begin() + few * cols}, few, cols, DType::f32), type, 1);
    for (std::size_t tokens = 1; tokens <= most; ++tokens) {
      const std::vector<float> inputs(x.begin(), x.begin() + tokens * cols);
      const std::vector<float> expected = product(table(), small, inputs), y = product(table(), large, inputs);
      for (std::size_t t = 0; t < tokens; ++t) {
        ASSERT_TRUE(std::equal(&expected[t * few], &expected[t * few] + few, &y[t * rows])) << t << " of " << tokens;
      }
    }
  }
}

// More than any kernel multiplies at once.
TEST_P(Kernels, ManyTokensOfManyColumnsEqualSingleTokens) {
  constexpr std::size_t rows = 41, cols = 1120, tokens = 131;
  const std::vector<float> w = random_floats(rows * cols, 7), x = random_floats(tokens * cols, 8);
  for (const DType type : {DType::f16, DType::q8_0, DType::q4_0, DType::iq4_nl}) {
    const WeightMatrix matrix = pack(stored(w, rows, cols, DType::f32), type, 1);
    const std::vector<float> batch = product(table(), matrix, x);
    for (std::size_t t = 0; t < tokens; ++t) {
      const std::vector<float> alone = product(table(), matrix, {&x[t * cols], &x[t * cols] + cols});
      ASSERT_TRUE(std::equal(alone.begin(), alone.end(), &batch[t * rows])) << name_of(type) << ", token " << t;
    }
  }
}

TEST_P(Kernels, ASumOfBlocksIsContinued) {
  constexpr std::size_t rows = 41, cols = 1120, first_cols = 64, most = 70;
  const std::vector<float> w = random_floats(rows * cols, 9), x = random_floats(most * cols, 10);
  const WeightMatrix matrix = pack(stored(w, rows, cols, DType::f32), DType::q8_0, 1);
  const Panels<kernels::Q8Block> packed = panels_of<kernels::Q8Block>(matrix);
  for (const std::size_t tokens : {1, 9, 15, 17, 70}) {
    const std::vector<float> inputs(x.begin(), x.begin() + tokens * cols);
    const Input input(table(), matrix, inputs);
    const auto blocks = rounded_as<kernels::ActivationBlock>(input.activations());
    std::vector<float> y(tokens * rows);
    const auto add = [&](std::size_t first, std::size_t count, bool continues) {
      const Panels<kernels::Q8Block> panels{packed.data + first / 32, packed.stride, rows, count};
      matmul(table(), panels, panels.all(),
             Matrix<const kernels::ActivationBlock>{blocks.data + first / 32, tokens, blocks.cols},
             Matrix<float>{y.data(), tokens, rows}, continues);
    };
    add(0, first_cols, false);
    add(first_cols, cols - first_cols, true);
    EXPECT_EQ(y, product(table(), matrix, inputs)) << tokens << " tokens";
  }
}

TEST_P(Kernels, MatmulWritesOnlyTheRequestedPanels) {
  constexpr std::size_t rows = 50, cols = 32;
  const WeightMatrix matrix = pack(stored(random_floats(rows * cols, 5), rows, cols, DType::f32), {}, 1);
  const std::vector<float> x = random_floats(2 * cols, 6);
  std::vector<float> y(2 * rows, 77.0f);
  matmul(table(), matrix, {1, 3}, Input(table(), matrix, x).activations(), Matrix<float>{y.data(), 2, rows});
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t row = i % rows;
    EXPECT_EQ(y[i] == 77.0f, row < 16 || row >= 48) << "row " << row;
  }
}

// Every binary16 and every bfloat16 through a one-column product with 1, NaN and infinity included.
TEST_P(Kernels, HalfPrecisionWeightsAreConvertedExactly) {
  constexpr std::size_t rows = 65536;
  for (const DType type : {DType::f16, DType::bf16}) {
    std::vector<std::byte> bytes(2 * rows);
    for (std::size_t i = 0; i < rows; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      std::memcpy(bytes.data() + 2 * i, &bits, 2);
    }
    const StoredTensor all{.dtype = type, .shape = {rows, 1}, .data = StoredBytes(std::move(bytes)), .file = "test"};
    const std::vector<float> y = product(table(), pack(all, {}, 1), {1.0f});
    for (std::size_t i = 0; i < rows; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      const float exact = type == DType::f16 ? to_f32(F16{bits}) : to_f32(Bf16{bits});
      if (std::isnan(exact)) {
        ASSERT_TRUE(std::isnan(y[i])) << i;
      } else {
        ASSERT_EQ(y[i], exact) << i;
      }
    }
  }
}

TEST_P(Kernels, RmsNormAgreesWithDoublePrecision) {
  for (const std::size_t n : {1u, 6u, 16u, 48u, 96u, 767u, 768u}) {
    const std::vector<float> x = random_floats(n, 7), weight = random_floats(n, 8);
    std::vector<float> out(n);
    table().rms_norm(x.data(), weight.data(), n, 1e-5f, out.data());
    double squares = 0;
    for (const float value : x) squares += static_cast<double>(value) * value;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    for (std::size_t i = 0; i < n; ++i) {
      // The sum of n squares is off by at most n epsilon of itself, its root by half of that; 4 more roundings.
      const double exact = x[i] * scale * weight[i];
      ASSERT_NEAR(out[i], exact, (static_cast<double>(n) / 2 + 4) * epsilon * std::fabs(exact)) << i << " of " << n;
    }
  }
}

TEST_P(Kernels, RopeRotatesHalvesAndAdjacentPairs) {
  constexpr std::size_t head_dim = 12;
  std::vector<float> cos(head_dim / 2), sin(head_dim / 2);
  for (std::size_t i = 0; i < head_dim / 2; ++i) {
    cos[i] = std::cos(0.3f * static_cast<float>(i + 1));
    sin[i] = std::sin(0.3f * static_cast<float>(i + 1));
  }
  const std::vector<float> head = random_floats(head_dim, 9);
  std::vector<float> halves = head, adjacent = head;
  table().rope_halves(halves.data(), cos.data(), sin.data(), head_dim);
  table().rope_adjacent_pairs(adjacent.data(), cos.data(), sin.data(), head_dim);
  const auto expect_turned = [&](const std::vector<float>& out, std::size_t a, std::size_t b, std::size_t i) {
    const double length = std::hypot(head[a], head[b]);
    EXPECT_NEAR(out[a], static_cast<double>(head[a]) * cos[i] - static_cast<double>(head[b]) * sin[i],
                2 * epsilon * length);
    EXPECT_NEAR(out[b], static_cast<double>(head[b]) * cos[i] + static_cast<double>(head[a]) * sin[i],
                2 * epsilon * length);
  };
  for (std::size_t i = 0; i < head_dim / 2; ++i) {
    expect_turned(halves, i, i + head_dim / 2, i);
    expect_turned(adjacent, 2 * i, 2 * i + 1, i);
  }
}

TEST_P(Kernels, SoftmaxAgreesWithDoublePrecision) {
  for (const std::size_t n : {1u, 3u, 16u, 77u, 300u}) {
    std::vector<float> x = random_floats(n, 10, 8);
    double largest = -INFINITY, sum = 0;
    for (const float value : x) largest = std::max(largest, static_cast<double>(value));
    std::vector<double> exact(n);
    for (std::size_t i = 0; i < n; ++i) sum += exact[i] = std::exp(x[i] - largest);
    table().softmax(x.data(), n);
    for (std::size_t i = 0; i < n; ++i) {
      // x - max is rounded before exp (|x - max| < 64), exp is good to 1.5 ulp, the sum of n to n epsilon.
      EXPECT_NEAR(x[i], exact[i] / sum, (64 + 4 + static_cast<double>(n)) * epsilon * exact[i] / sum);
    }
  }
}

TEST_P(Kernels, SoftmaxIsFiniteForScoresOfAnySize) {
  std::vector<float> x{-3e38f, 3e38f, -3e38f, 1e30f, 0};
  table().softmax(x.data(), x.size());
  EXPECT_EQ(x, (std::vector<float>{0, 1, 0, 0, 0}));
}

TEST_P(Kernels, RoundToF16EqualsTheScalarConversion) {
  std::vector<float> x{0.0f, -0.0f, 65504, 65519.9f, 65520, 1e9f, INFINITY, -INFINITY, 0x1p-24f, 0x1p-25f, 0x1.8p-25f};
  for (std::uint32_t i = 0; i < 1 << 16; ++i) {  // between each two neighbours, and at their middle
    const float value = to_f32(F16{static_cast<std::uint16_t>(i)});
    if (!std::isfinite(value)) continue;
    const float next = to_f32(F16{static_cast<std::uint16_t>(i + 1)});
    x.insert(x.end(), {value, 0.5f * (value + next), std::nextafter(0.5f * (value + next), value)});
  }
  std::vector<F16> rounded(x.size());
  table().round_to_f16(x.data(), x.size(), rounded.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) continue;
    ASSERT_EQ(rounded[i].bits, to_f16(x[i]).bits) << x[i];
  }
  const float nan = NAN;
  table().round_to_f16(&nan, 1, rounded.data());
  EXPECT_TRUE(std::isnan(to_f32(rounded[0])));
}

double exact_activation(kernels::Activation activation, double x) {
  switch (activation) {
    case kernels::Activation::silu:
      return x / (1 + std::exp(-x));
    case kernels::Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case kernels::Activation::relu:
      return x > 0 ? x : 0;
    case kernels::Activation::gelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case kernels::Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case kernels::Activation::linear:
      return x;
  }
  return NAN;
}

const std::set<kernels::Activation> activations = [] {
  std::set<kernels::Activation> all;
  for (const HiddenActName& known : hidden_act_names) all.insert(known.act);
  return all;
}();

// The bound is 1e-6 times the largest of 1, |x| and the result: each is a few roundings of values of at most that size.
TEST_P(Kernels, ActivationsAgreeWithDoublePrecision) {
  for (const kernels::Activation activation : activations) {
    for (float x = -12; x <= 12; x += 0.0173f) {
      float gate = x;
      table().activate(activation, &gate, nullptr, 1);
      const double exact = exact_activation(activation, x);
      ASSERT_NEAR(gate, exact, 1e-6 * std::max({1.0, double{std::fabs(x)}, std::fabs(exact)}))
          << static_cast<int>(activation) << " of " << x;
    }
  }
}

TEST_P(Kernels, ActivationsHaveTheirKnownValues) {
  const auto activated = [&](kernels::Activation activation, float x) {
    table().activate(activation, &x, nullptr, 1);
    return x;
  };
  EXPECT_NEAR(activated(kernels::Activation::silu, -1), -0.2689414, 1e-6);
  EXPECT_NEAR(activated(kernels::Activation::sigmoid, 0), 0.5, 1e-6);
  EXPECT_EQ(activated(kernels::Activation::relu, -2), 0);
  EXPECT_NEAR(activated(kernels::Activation::gelu, 1), 0.8413447, 1e-6);
  EXPECT_NEAR(activated(kernels::Activation::gelu_tanh, 1), 0.8411920, 1e-6);
  EXPECT_EQ(activated(kernels::Activation::linear, 3), 3);
}

TEST_P(Kernels, ActivationsAreRightForExtremeInputs) {
  for (const float x : {-1e30f, -100.0f, 100.0f, 1e30f}) {
    for (const kernels::Activation activation : activations) {
      float gate = x;
      table().activate(activation, &gate, nullptr, 1);
      const float exact = static_cast<float>(exact_activation(activation, x));
      if (std::isinf(exact)) {
        EXPECT_EQ(gate, exact) << static_cast<int>(activation) << " of " << x;
        continue;
      }
      // Results below the smallest normal float may become 0.
      EXPECT_NEAR(gate, exact, 1e-6 * std::fabs(exact) + std::numeric_limits<float>::min())
          << static_cast<int>(activation) << " of " << x;
    }
  }
}

TEST_P(Kernels, ActivateMultipliesByUpOverVectorsAndTail) {
  for (const std::size_t n : {1u, 5u, 16u, 37u}) {
    std::vector<float> gate = random_floats(n, 14);
    const std::vector<float> before = gate, up = random_floats(n, 15);
    table().activate(kernels::Activation::relu, gate.data(), up.data(), n);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(gate[i], std::max(before[i], 0.0f) * up[i]);
  }
}

TEST_P(Kernels, AddsCoverVectorsAndTail) {
  for (const std::size_t n : {1u, 15u, 16u, 50u}) {
    const std::vector<float> start = random_floats(n, 16), y = random_floats(n, 17);
    std::vector<float> sum = start, scaled = start;
    table().add(sum.data(), y.data(), n);
    table().add_scaled(scaled.data(), y.data(), 0.37f, n);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(sum[i], start[i] + y[i]);
      const double exact = start[i] + static_cast<double>(0.37f) * y[i];
      EXPECT_NEAR(scaled[i], exact, epsilon * (std::fabs(start[i]) + std::fabs(y[i])));
    }
  }
}

class ForcedIsa : public testing::Test {
 protected:
  void TearDown() override { unsetenv("MINIMIND_ISA"); }
};

TEST_F(ForcedIsa, ChoosesTheNamedTable) {
  for (const kernels::Table* table : tables()) {
    setenv("MINIMIND_ISA", table->name, 1);
    EXPECT_EQ(&kernels::choose(), table);
  }
}

TEST_F(ForcedIsa, RejectsAnUnknownSetListingTheOthers) {
  setenv("MINIMIND_ISA", "mmx", 1);
  try {
    kernels::choose();
    FAIL() << "mmx was accepted";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("mmx"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find(tables().back()->name), std::string::npos);
  }
}

TEST_F(ForcedIsa, ChoosesTheBestWhenNothingIsForced) {
  EXPECT_EQ(&kernels::choose(), tables().front());
}

}  // namespace
}  // namespace minimind
