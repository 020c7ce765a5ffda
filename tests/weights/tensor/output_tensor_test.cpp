#include "weights/tensor/output_tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/stored.h"
#include "tests/support/temporary_file.h"
#include "weights/tensor/block_formats.h"
#include "weights/tensor/half.h"
#include "weights/tensor/shape.h"
#include "weights/tensor/stored_numbers.h"

namespace minimind {
namespace {

constexpr float infinite = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

std::string encoded(const OutputTensor& tensor, std::size_t threads = 2) {
  std::string bytes;
  encode(tensor, threads, [&](std::span<const std::byte> part) { bytes += as_string(part); });
  EXPECT_EQ(bytes.size(), byte_count(tensor));
  return bytes;
}

std::vector<float> encoded_floats(const OutputTensor& tensor) {
  return to_floats(make_tensor(tensor.dtype, tensor.shape, encoded(tensor)));
}

StoredTensor as_type(DType dtype, const StoredTensor& f32) {
  return make_tensor(dtype, f32.shape, encoded({.name = "t", .dtype = dtype, .shape = f32.shape, .sources = {&f32}}));
}

bool fits(const std::vector<float>& values, DType from, DType to) {
  const StoredTensor tensor = f32_tensor({values.size()}, values);
  return can_encode(from == DType::f32 ? tensor : as_type(from, tensor), to, 2);
}

TEST(OutputTensor, CopiesRowsOfTheWantedTypeBitForBit) {
  const std::string bytes("\x01\x7E\xFF\xFF\x00\x00\x00\x80\x01\x00\x00\x7C",
                          12);  // NaNs, zeros, a subnormal, infinity
  const StoredTensor source = make_tensor(DType::f16, {3, 2}, bytes);
  OutputTensor tensor{.name = "t", .dtype = DType::f16, .shape = {3, 2}, .sources = {&source}};
  EXPECT_EQ(encoded(tensor), bytes);
  tensor.row_order = {2, 0, 1};
  EXPECT_EQ(encoded(tensor), bytes.substr(8) + bytes.substr(0, 8));
}

TEST(OutputTensor, RoundsEachNumberToTheWantedType) {
  const std::vector<float> values{0, -0.0f, 1, 1.0f / 3, -65504, 65519, 1e-8f, 3e38f, infinite};
  const StoredTensor source = f32_tensor({values.size()}, values);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const auto got = encoded_floats({.name = "t", .dtype = dtype, .shape = source.shape, .sources = {&source}});
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float wanted = dtype == DType::f16    ? to_f32(to_f16(values[i]))
                           : dtype == DType::bf16 ? to_f32(to_bf16(values[i]))
                                                  : values[i];
      EXPECT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(wanted)) << values[i];
    }
  }
}

TEST(OutputTensor, WidensHalvesExactly) {
  const StoredTensor f32 = f32_tensor({2, 3}, {0.5f, -2, 65504, 0x1p-24f, 0, 0.25f});
  for (const DType stored : {DType::f16, DType::bf16}) {
    const StoredTensor source = as_type(stored, f32);
    EXPECT_EQ(encoded_floats({.name = "t", .dtype = DType::f32, .shape = {2, 3}, .sources = {&source}}),
              to_floats(source));
  }
}

TEST(OutputTensor, StacksMatricesBelowEachOther) {
  const StoredTensor first = counting_tensor({2, 3}, 10);
  const StoredTensor second = as_type(DType::f16, counting_tensor({2, 3}, 20));
  EXPECT_EQ(encoded_floats({.name = "t", .dtype = DType::f32, .shape = {2, 2, 3}, .sources = {&first, &second}}),
            (std::vector<float>{10, 11, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25}));
}

TEST(OutputTensor, PutsMatricesSideBySide) {
  const StoredTensor left = counting_tensor({2, 2}, 10);
  const StoredTensor right = counting_tensor({2, 3}, 20);
  for (const DType stored : {DType::f32, DType::f16}) {  // copied, converted
    const StoredTensor a = as_type(stored, left), b = as_type(stored, right);
    EXPECT_EQ(encoded_floats({.name = "t",
                              .dtype = DType::f32,
                              .shape = {2, 5},
                              .sources = {&a, &b},
                              .join = OutputTensor::Join::columns}),
              (std::vector<float>{10, 11, 20, 21, 22, 12, 13, 23, 24, 25}));
  }
}

TEST(OutputTensor, GathersRowsInTheOrderGiven) {
  const StoredTensor first = counting_tensor({2, 2}, 0), second = counting_tensor({1, 2}, 10);
  const OutputTensor rows{
      .name = "t", .dtype = DType::f16, .shape = {4, 2}, .sources = {&first, &second}, .row_order = {2, 0, 2, 1}};
  EXPECT_EQ(encoded_floats(rows), (std::vector<float>{10, 11, 0, 1, 10, 11, 2, 3}));
}

TEST(OutputTensor, IsTheSameOnAnyNumberOfThreadsAndOverManyChunks) {
  const StoredTensor source = counting_tensor({3001, 1000});  // 12 MB
  const OutputTensor tensor{.name = "t", .dtype = DType::f16, .shape = source.shape, .sources = {&source}};
  const std::string one = encoded(tensor, 1);
  EXPECT_TRUE(one == encoded(tensor, 3));
  const StoredTensor back = make_tensor(DType::f16, source.shape, one);
  for (const std::size_t row : {0u, 1u, 1500u, 3000u}) {
    float value = 0;
    read_floats(back, row * 1000, 1, &value);
    EXPECT_EQ(value, to_f32(to_f16(static_cast<float>(row * 1000))));
  }
}

TEST(OutputTensor, QuantizesRowByRow) {
  std::vector<float> values(4 * 64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i)) * static_cast<float>(i);
  const StoredTensor f32 = f32_tensor({4, 64}, values);
  const StoredTensor f16 = as_type(DType::f16, f32);
  for (const DType dtype : {DType::q8_0, DType::q4_0, DType::iq4_nl}) {
    std::string wanted(byte_count(f16.shape, dtype).value(), '\0');
    quantize(dtype, to_floats(f16).data(), values.size(), reinterpret_cast<std::byte*>(wanted.data()));
    const OutputTensor tensor{.name = "t", .dtype = dtype, .shape = {4, 64}, .sources = {&f16}};
    EXPECT_EQ(encoded(tensor), wanted);
    const StoredTensor blocks = make_tensor(dtype, {4, 64}, wanted);
    EXPECT_EQ(encoded({.name = "t", .dtype = dtype, .shape = {4, 64}, .sources = {&blocks}}), wanted);
    const OutputTensor widened{.name = "t", .dtype = DType::f32, .shape = {4, 64}, .sources = {&blocks}};
    EXPECT_EQ(encoded_floats(widened), to_floats(blocks));
  }
}

// 24 and 40 columns are not whole blocks, but 64 are.
TEST(OutputTensor, QuantizesRowsThatAreJoinedFirst) {
  const StoredTensor left = counting_tensor({2, 24}), right = counting_tensor({2, 40}, 100);
  OutputTensor tensor{.name = "t",
                      .dtype = DType::f32,
                      .shape = {2, 64},
                      .sources = {&left, &right},
                      .join = OutputTensor::Join::columns};
  std::string wanted(byte_count(tensor.shape, DType::q8_0).value(), '\0');
  quantize(DType::q8_0, encoded_floats(tensor).data(), 128, reinterpret_cast<std::byte*>(wanted.data()));
  tensor.dtype = DType::q8_0;
  EXPECT_EQ(encoded(tensor), wanted);
}

TEST(OutputTensor, WritesScalarsAndNothingOfAnEmptyMatrix) {
  const StoredTensor scalar = f32_tensor({}, {3});
  EXPECT_EQ(encoded_floats({.name = "t", .dtype = DType::f16, .shape = {}, .sources = {&scalar}}),
            std::vector<float>{3});
  const StoredTensor none = f32_tensor({0, 4}, {});
  EXPECT_EQ(encoded({.name = "t", .dtype = DType::f16, .shape = {0, 4}, .sources = {&none}}), "");
}

TEST(OutputTensor, IsReadRepeatedlyFromAFile) {
  std::string bytes(1 << 20, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 61);
  const TemporaryFile file(bytes);
  StoredTensor source = make_tensor(DType::f16, {512, 1024}, bytes);
  source.data = StoredBytes(file.open(), {0, bytes.size()});
  EXPECT_TRUE(can_encode(source, DType::q8_0, 2));
  for (int time = 0; time < 2; ++time) {
    EXPECT_TRUE(encoded({.name = "t", .dtype = DType::f16, .shape = source.shape, .sources = {&source}}) == bytes);
  }
}

TEST(OutputTensor, RejectsSourcesThatDoNotMatchTheShape) {
  const StoredTensor a = zeros({2, 3}), b = zeros({2, 4}), c = zeros({1, 3});
  const auto refused = [](const OutputTensor& tensor) { return error_of([&] { encode(tensor, 1, [](auto) {}); }); };
  EXPECT_EQ(refused({.name = "t", .shape = {2, 4}, .sources = {&a}}), "tensor 't' [2, 4] cannot be made of [2, 3]");
  EXPECT_NE(refused({.name = "t", .shape = {4, 3}, .sources = {&a, &b}}), "");
  EXPECT_NE(refused({.name = "t", .shape = {4, 3}, .sources = {&a}}), "");
  EXPECT_NE(refused({.name = "t", .shape = {2, 3}, .sources = {}}), "");
  EXPECT_NE(refused({.name = "t", .shape = {2, 6}, .sources = {&a, &c}, .join = OutputTensor::Join::columns}), "");
  EXPECT_NE(refused({.name = "t", .shape = {2, 3}, .sources = {&a}, .row_order = {0, 2}}), "");
  EXPECT_NE(refused({.name = "t", .shape = {2, 3}, .sources = {&a}, .row_order = {0}}), "");
}

TEST(OutputTensor, PassesOnWhatAThreadThrows) {
  const StoredTensor integers = zeros({64, 32}, DType::i64);
  const OutputTensor tensor{.name = "t", .dtype = DType::f16, .shape = {64, 32}, .sources = {&integers}};
  EXPECT_NE(error_of([&] { encode(tensor, 2, [](auto) {}); }).find("stored as i64"), std::string::npos);
}

TEST(ByteCount, RejectsRowsThatAreNotWholeBlocks) {
  EXPECT_EQ(byte_count(OutputTensor{.name = "t", .dtype = DType::q8_0, .shape = {3, 64}}), 3u * 2 * 34);
  EXPECT_EQ(error_of([] {
              byte_count(OutputTensor{.name = "t", .dtype = DType::q8_0, .shape = {3, 48}});
            }),
            "tensor 't' [3, 48] cannot be written as q8_0");
}

TEST(CanEncode, LetsNoFiniteNumberBecomeInfinite) {
  EXPECT_TRUE(fits({65519.996f, -65519.996f}, DType::f32, DType::f16));
  EXPECT_FALSE(fits({0, 65520}, DType::f32, DType::f16));
  EXPECT_FALSE(fits({-65536, 0}, DType::bf16, DType::f16));
  EXPECT_TRUE(fits({3.38e38f}, DType::f32, DType::bf16));
  EXPECT_FALSE(fits({-3.4e38f}, DType::f32, DType::bf16));
  EXPECT_FALSE(fits({infinite, -65536}, DType::f32, DType::f16));
  EXPECT_TRUE(fits({65504}, DType::f16, DType::bf16));
  EXPECT_TRUE(fits({3e38f}, DType::bf16, DType::f32));
}

TEST(CanEncode, KeepsInfinityAndNanInFloatTypesOnly) {
  for (const float value : {infinite, -infinite, not_a_number}) {
    const std::vector<float> values(32, value);
    for (const DType to : {DType::f32, DType::f16, DType::bf16}) EXPECT_TRUE(fits(values, DType::f32, to));
    for (const DType to : {DType::q8_0, DType::q4_0, DType::iq4_nl}) EXPECT_FALSE(fits(values, DType::f32, to));
    EXPECT_FALSE(fits(values, DType::f16, DType::q8_0));
  }
}

TEST(CanEncode, RequiresScalesThatFitABinary16) {
  std::vector<float> values(64);
  values[40] = -65519.0f * 127;
  EXPECT_TRUE(fits(values, DType::f32, DType::q8_0));
  values[40] = -65520.0f * 127;
  EXPECT_FALSE(fits(values, DType::f32, DType::q8_0));
  values[40] = 65519.0f * 8;
  EXPECT_TRUE(fits(values, DType::f32, DType::q4_0));
  values[40] = 65520.0f * 8;
  EXPECT_FALSE(fits(values, DType::f32, DType::q4_0));
  values[40] = 65519.0f * 64;
  EXPECT_TRUE(fits(values, DType::f32, DType::iq4_nl));
  values[40] = 65520.0f * 64;
  EXPECT_FALSE(fits(values, DType::f32, DType::iq4_nl));
}

// iq4_nl searches for its scale; these are the largest numbers that can_encode lets pass, in the patterns that make the
// scale largest.
TEST(CanEncode, LetsNoScaleOfIq4NlBecomeInfinite) {
  const float largest = 65519.0f * 64;
  for (const float others : {0.0f, 7.0f, -16.0f, 19.0f, 25.1f, -28.4f, 31.4f, 1e9f}) {
    std::vector<float> values(32, std::min(others / 96 * largest, largest));
    values[3] = largest;
    ASSERT_TRUE(fits(values, DType::f32, DType::iq4_nl));
    const StoredTensor source = f32_tensor({32}, values);
    const auto back = to_floats(as_type(DType::iq4_nl, source));
    for (const float value : back) EXPECT_TRUE(std::isfinite(value)) << others;
  }
}

// The largest numbers that can_encode lets pass, in patterns that make scales and minima large.
TEST(CanEncode, LetsNoScaleOfTheTypesWithMinimaAndTheKQuantsBecomeInfinite) {
  const struct {
    DType type;
    float divisor;
  } bounds[] = {{DType::q5_0, 16}, {DType::q4_1, 1},  {DType::q5_1, 1},
                {DType::q4_k, 16}, {DType::q5_k, 16}, {DType::q6_k, 2048}};
  for (const auto& [type, divisor] : bounds) {
    const float largest = 65519.0f * divisor;
    EXPECT_FALSE(fits(std::vector<float>(256, 65520.0f * divisor), DType::f32, type)) << name_of(type);
    for (const float sign : {1.0f, -1.0f}) {
      for (const int pattern : {1, 2, 3, 8, 31, 32}) {
        for (const float others : {0.0f, 0.01f, 0.3f, 0.999f, 1.0f, -0.01f, -0.3f, -1.0f}) {
          std::vector<float> values(256, sign * others * largest);
          for (std::size_t i = 0; i < 256; i += pattern) values[i] = sign * largest;
          ASSERT_TRUE(fits(values, DType::f32, type)) << name_of(type);
          const auto back = to_floats(as_type(type, f32_tensor({256}, values)));
          for (std::size_t i = 0; i < 256; ++i) {
            ASSERT_NEAR(back[i], values[i], 0.2f * largest) << name_of(type) << " " << pattern << " " << others;
          }
        }
      }
    }
  }
}

TEST(CanEncode, RequiresRowsOfWholeBlocks) {
  EXPECT_FALSE(can_encode(zeros({2, 352}), DType::q4_k, 1));
  EXPECT_TRUE(can_encode(zeros({2, 512}), DType::q4_k, 1));
  EXPECT_TRUE(can_encode(zeros({3, 64}), DType::q8_0, 1));
  EXPECT_FALSE(can_encode(zeros({64, 48}), DType::q8_0, 1));
  EXPECT_FALSE(can_encode(zeros({}), DType::q8_0, 1));
  EXPECT_TRUE(can_encode(zeros({0, 32}), DType::q8_0, 1));
}

TEST(CanEncode, KnowsWhatCannotBeReadOrWritten) {
  EXPECT_FALSE(can_encode(zeros({32}, DType::i64), DType::f32, 1));
  EXPECT_TRUE(can_encode(zeros({32}, DType::i64), DType::i64, 1));
  EXPECT_FALSE(can_encode(zeros({32}), DType::i64, 1));
  EXPECT_FALSE(can_encode(zeros({256}), DType::q3_k, 1));
}

DType fallback_of(DType wanted, std::size_t cols) {
  return type_or_fallback(wanted, DType::f32, cols, [&](DType type) { return cols % block_shape(type).elements == 0; });
}

TEST(TypeOrFallback, GivesRowsThatAreNotWholeBlocksOf256TheTypeOf32ThatLlamaCppGivesThem) {
  EXPECT_EQ(fallback_of(DType::q4_k, 512), DType::q4_k);
  EXPECT_EQ(fallback_of(DType::q4_k, 352), DType::q5_0);
  EXPECT_EQ(fallback_of(DType::q5_k, 352), DType::q5_1);
  EXPECT_EQ(fallback_of(DType::q6_k, 352), DType::q8_0);
  for (const DType wanted : {DType::q4_k, DType::q5_k, DType::q6_k, DType::q5_0, DType::q8_0}) {
    EXPECT_EQ(fallback_of(wanted, 53), DType::f16) << name_of(wanted);
  }
}

TEST(TypeOrFallback, IsLosslessIfTheValuesDoNotFit) {
  const auto floats_fit = [](DType type) { return type == DType::f32; };
  EXPECT_EQ(type_or_fallback(DType::q4_k, DType::bf16, 256, floats_fit), DType::bf16);
  EXPECT_EQ(type_or_fallback(DType::q4_k, DType::bf16, 32, floats_fit), DType::bf16);
}

}  // namespace
}  // namespace minimind
