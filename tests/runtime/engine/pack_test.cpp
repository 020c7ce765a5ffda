#include "runtime/engine/pack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/support/packed.h"
#include "tests/support/random_blocks.h"
#include "tests/support/stored.h"
#include "tests/support/temporary_file.h"
#include "weights/tensor/block_formats.h"
#include "weights/tensor/stored_numbers.h"

namespace minimind {
namespace {

constexpr DType requested_types[] = {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::iq4_nl};

// Random bytes: the floats of block types may be infinite or NaN.
StoredTensor random_bytes(DType type, const Shape& shape, unsigned seed, unsigned mask = 0xFF) {
  std::mt19937 random(seed);
  std::string bytes(size_of_shape(shape) / block_shape(type).elements * block_shape(type).bytes, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random() & mask);
  return make_tensor(type, shape, bytes);
}

// Values below 2 in magnitude, which every type can represent.
StoredTensor random_tensor(DType type, const Shape& shape, unsigned seed) {
  if (is_block_type(type)) return random_bytes(type, shape, seed, 0x3F);  // no scale can have a large exponent
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-2, 2);
  std::string bytes;
  for (std::size_t i = 0; i < size_of_shape(shape); ++i) {
    const float value = uniform(random);
    if (type == DType::f32) bytes += little_endian(value);
    if (type == DType::f16) bytes += little_endian(to_f16(value).bits);
    if (type == DType::bf16) bytes += little_endian(to_bf16(value).bits);
  }
  return make_tensor(type, shape, bytes);
}

StoredTensor full_of(float value, std::size_t cols, DType type = DType::f32) {
  if (type == DType::f32) return f32_tensor({2, cols}, std::vector<float>(2 * cols, value));
  std::string bytes;
  for (std::size_t i = 0; i < 2 * cols; ++i) {
    bytes += little_endian(type == DType::f16 ? to_f16(value).bits : to_bf16(value).bits);
  }
  return make_tensor(type, {2, cols}, bytes);
}

std::vector<float> all_rows(const WeightMatrix& matrix) {
  std::vector<float> values(matrix.rows() * matrix.cols());
  for (std::size_t row = 0; row < matrix.rows(); ++row) read_row(matrix, row, &values[row * matrix.cols()]);
  return values;
}

// But a NaN is a NaN: processors and compilers choose its sign.
void expect_same_bits(const std::vector<float>& values, const std::vector<float>& expected, const std::string& what) {
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i]) && std::isnan(expected[i])) continue;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(expected[i])) << what << ", " << i;
  }
}

// Writes values as `type` and reads them back.
std::vector<float> rounded(std::vector<float> values, DType type) {
  if (is_block_type(type)) {
    std::vector<std::byte> blocks(values.size() / block_shape(type).elements * block_shape(type).bytes);
    quantize(type, values.data(), values.size(), blocks.data());
    dequantize(type, blocks.data(), values.size(), values.data());
  }
  for (float& value : values) {
    if (type == DType::f16) value = to_f32(to_f16(value));
    if (type == DType::bf16) value = to_f32(to_bf16(value));
  }
  return values;
}

const std::byte* data_of(const WeightMatrix& matrix) {
  return matrix.data();
}

TEST(PackedMatrix, KeepsTheBitsOfTypesWithAKernel) {
  for (const DTypeRow& type : dtype_rows) {
    if (!find_matrix_format(type.type) || type.type == DType::q8_r) continue;  // which files do not have
    const std::size_t columns = 3 * std::max<std::size_t>(type.block.elements, 32);
    const StoredTensor tensor = random_bytes(type.type, {37, columns}, 1);
    EXPECT_EQ(packed_type(tensor, std::nullopt, 1), type.type);
    const WeightMatrix matrix = pack(tensor, std::nullopt, 1);
    expect_same_bits(all_rows(matrix), to_floats(tensor), std::string(type.name));
  }
}

// Of 48 rows, the last panel's padding included.
TEST(PackedMatrix, TakesAsManyBytesAsAFileOrOneMoreForEachSixBitInteger) {
  for (const DTypeRow& type : dtype_rows) {
    if (!find_matrix_format(type.type) || type.type == DType::q8_r) continue;  // which files do not have
    const std::size_t in_file = 48 * 512 / type.block.elements * type.block.bytes;
    const std::size_t packed = pack(random_bytes(type.type, {37, 512}, 1), std::nullopt, 1).byte_size();
    const bool six_bits =
        type.type == DType::q3_k || type.type == DType::q4_k || type.type == DType::q5_k || type.type == DType::iq4_xs;
    EXPECT_GE(packed, in_file) << type.name;
    EXPECT_LE(25 * packed, (six_bits ? 26 : 25) * in_file) << type.name;
  }
}

// The values of a row are moved by half a step of its scale at most, in the root mean square.
TEST(PackedMatrix, ConvertsEveryTypeToRowsOf8Bits) {
  for (const DType from : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_1, DType::q6_k}) {
    const StoredTensor tensor = random_tensor(from, {37, 512}, 4);
    EXPECT_EQ(packed_type(tensor, DType::q8_r, 1), DType::q8_r);
    const WeightMatrix matrix = pack(tensor, DType::q8_r, 2);
    EXPECT_EQ(matrix.byte_size(), 3 * (512 + sizeof(float)) * 16);
    const std::vector<float> values = to_floats(tensor), held = all_rows(matrix);
    for (std::size_t row = 0; row < 37; ++row) {
      double errors = 0, largest = 0;
      for (std::size_t i = row * 512; i < (row + 1) * 512; ++i) {
        errors += (values[i] - held[i]) * (values[i] - held[i]);
        largest = std::max(largest, std::fabs(static_cast<double>(values[i])));
      }
      // Mixing 16 columns makes the largest value at most 4 times as large.
      EXPECT_LE(std::sqrt(errors / 512), 0.5 * 4 * largest / 127) << name_of(from) << ", row " << row;
      EXPECT_GT(errors, 0) << name_of(from) << ", row " << row;
    }
  }
}

TEST(PackedMatrix, ConvertsRowsOfAnySizeAndWithAnyValuesToRowsOf8Bits) {
  const StoredTensor odd = f32_tensor({3, 5}, {1, -1, 2, 0.5f, 3, 0, 0, 0, 0, 0, 1, NAN, 1, 1, 1});
  EXPECT_EQ(packed_type(odd, DType::q8_r, 1), DType::q8_r);
  const std::vector<float> held = all_rows(pack(odd, DType::q8_r, 1));
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(held[i], to_floats(odd)[i], 0.5 * 3 / 127 + 1e-6) << i;
    EXPECT_EQ(held[5 + i], 0.0f) << i;
    EXPECT_TRUE(std::isnan(held[10 + i])) << i;
  }
}

TEST(PackedMatrix, RejectsRowsWhoseSumsMayNotFitIn32Bits) {
  const std::size_t most = (std::size_t{1} << 31) / (127 * 128);
  EXPECT_EQ(pack(f32_tensor({1, most}, std::vector<float>(most, 1.0f)), DType::q8_r, 1).cols(), most);
  const StoredTensor longer = f32_tensor({1, most + 1}, std::vector<float>(most + 1, 1.0f));
  EXPECT_EQ(error_of([&] { pack(longer, DType::q8_r, 1); }), "a matrix of 1 x 132105 is too large for q8_r");
}

TEST(PackedMatrix, ConvertsOtherBlockTypesToTheSameFloats) {
  for (const DType type : {DType::iq3_s, DType::iq2_xs, DType::iq1_m, DType::tq1_0, DType::mxfp4, DType::nvfp4}) {
    const StoredTensor tensor = random_bytes(type, {21, 512}, 2);
    EXPECT_EQ(packed_type(tensor, std::nullopt, 1), DType::f32) << name_of(type);
    expect_same_bits(all_rows(pack(tensor, std::nullopt, 1)), to_floats(tensor), std::string(name_of(type)));
  }
}

TEST(PackedMatrix, ConvertsEveryTypeToEveryOther) {
  for (const DType from : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_1, DType::q6_k}) {
    const StoredTensor tensor = random_tensor(from, {21, 512}, 3);
    for (const DType type : requested_types) {
      ASSERT_EQ(packed_type(tensor, type, 2), type);
      const std::vector<float> stored = to_floats(tensor);
      expect_same_bits(all_rows(pack(tensor, type, 2)), from == type ? stored : rounded(stored, type),
                       std::string(name_of(from)) + " to " + std::string(name_of(type)));
    }
  }
}

// 352 columns are not a multiple of those that are converted together.
TEST(PackedMatrix, OddWidthsAreConvertedToTheEnd) {
  const StoredTensor tensor = random_tensor(DType::f16, {17, 352}, 4);
  for (const DType type : requested_types) {
    expect_same_bits(all_rows(pack(tensor, type, 1)), rounded(to_floats(tensor), type), std::string(name_of(type)));
  }
}

TEST(PackedMatrix, ValuesOfAnyShapeStayTheSame) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::size_t rows : {1u, 8u, 12u, 37u, 64u}) {
      for (const std::size_t columns : {1u, 4u, 8u, 17u, 100u}) {
        const StoredTensor tensor = random_tensor(type, {rows, columns}, 9);
        expect_same_bits(all_rows(pack(tensor, std::nullopt, 1)), to_floats(tensor),
                         std::string(name_of(type)) + ", " + shape_text(tensor.shape));
      }
    }
  }
}

TEST(PackedMatrix, ForProductsOfBf16IsRoundedOnceAndPaddedWithZeros) {
  for (const std::size_t columns : {1u, 31u, 33u, 96u, 352u}) {
    for (const DType from : {DType::f32, DType::f16, DType::bf16}) {
      const StoredTensor tensor = random_tensor(from, {37, columns}, 7);
      for (const DType type : {DType::f16, DType::bf16}) {
        const WeightMatrix matrix = pack(tensor, type, 1, Compute::bf16);
        expect_same_bits(all_rows(matrix), rounded(to_floats(tensor), DType::bf16), std::string(name_of(from)));
        const std::size_t values = 37 * columns, places = 48 * kernels::block_count(columns) * kernels::block_cols;
        ASSERT_EQ(matrix.byte_size(), 2 * places);
        std::size_t zeros = 0;
        for (std::size_t i = 0; i < places; ++i) zeros += load_element<std::uint16_t>(data_of(matrix), i) == 0;
        EXPECT_GE(zeros, places - values) << columns << " columns";
      }
    }
  }
}

TEST(PackedMatrix, PaddingRowsAreZero) {
  for (const DType from : {DType::f32, DType::q4_0, DType::q5_1}) {
    const StoredTensor tensor = random_tensor(from, {1, 64}, 5);
    for (const DType type : requested_types) {
      const WeightMatrix matrix = pack(tensor, type, 1);
      // Products do not show the padding, so this reads its bytes: all of lanes 1 to 15.
      const std::size_t lane_bytes = matrix.byte_size() / 16;
      std::size_t zeros = 0;
      for (std::size_t i = 0; i < matrix.byte_size(); ++i) zeros += data_of(matrix)[i] == std::byte{0};
      EXPECT_GE(zeros, 15 * lane_bytes) << name_of(from) << " as " << name_of(type);
    }
  }
  for (const DType type : part_types) {
    const WeightMatrix matrix = pack(random_bytes(type, {1, 256}, 8), std::nullopt, 1);
    const std::size_t zeros = std::count(data_of(matrix), data_of(matrix) + matrix.byte_size(), std::byte{0});
    EXPECT_GE(zeros, 15 * matrix.byte_size() / 16) << name_of(type);
  }
}

TEST(PackedMatrix, ThreadsDoNotChangeABit) {
  const StoredTensor tensor = random_tensor(DType::f32, {700, 96}, 6);
  for (const DType type : requested_types) {
    const WeightMatrix alone = pack(tensor, type, 1), together = pack(tensor, type, 3);
    EXPECT_EQ(std::memcmp(data_of(alone), data_of(together), alone.byte_size()), 0) << name_of(type);
  }
}

TEST(PackedType, IsF16IfColumnsAreNotWholeBlocks) {
  for (const DType type : {DType::q8_0, DType::q4_0, DType::iq4_nl}) {
    EXPECT_EQ(packed_type(full_of(1, 33), type, 1), DType::f16);
    EXPECT_EQ(packed_type(full_of(1, 33, DType::bf16), type, 1), DType::f16);
    EXPECT_EQ(packed_type(full_of(1, 64), type, 1), type);
  }
}

TEST(PackedType, IsAsStoredIfAValueWouldBecomeInfinite) {
  EXPECT_EQ(packed_type(full_of(65519, 3), DType::f16, 1), DType::f16);
  EXPECT_EQ(packed_type(full_of(-65520, 3), DType::f16, 1), DType::f32);
  EXPECT_EQ(packed_type(full_of(1e6f, 3, DType::bf16), DType::f16, 1), DType::bf16);
  EXPECT_EQ(packed_type(full_of(std::numeric_limits<float>::max(), 3), DType::bf16, 1), DType::f32);
  EXPECT_EQ(packed_type(full_of(1e6f, 33), DType::q8_0, 1), DType::f32) << "the f16 for odd columns is also too small";
  for (const DType type : {DType::q8_0, DType::q4_0, DType::iq4_nl}) {
    EXPECT_EQ(packed_type(full_of(1e5f, 32), type, 1), type) << "a block's scale allows 100000";
    EXPECT_EQ(packed_type(full_of(1e7f, 32), type, 1), DType::f32);
  }
}

TEST(PackedType, IsAsStoredIfABlockHasInfinityOrNan) {
  for (const float value : {INFINITY, -INFINITY, NAN}) {
    for (const DType type : {DType::q8_0, DType::q4_0, DType::iq4_nl}) {
      EXPECT_EQ(packed_type(full_of(value, 32), type, 1), DType::f32);
      EXPECT_EQ(packed_type(full_of(value, 32, DType::f16), type, 1), DType::f16);
    }
    EXPECT_EQ(packed_type(full_of(value, 32), DType::f16, 1), DType::f16) << "f16 has infinity and NaN";
  }
}

TEST(PackedType, ChecksEveryValue) {
  std::vector<float> values(100 * 64, 1.0f);
  for (const std::size_t at : {std::size_t{0}, std::size_t{3333}, values.size() - 1}) {
    std::vector<float> with_one = values;
    with_one[at] = 1e8f;
    EXPECT_EQ(packed_type(f32_tensor({100, 64}, with_one), DType::q8_0, 2), DType::f32) << at;
  }
}

TEST(PackedType, RejectsIntegers) {
  const StoredTensor tensor = zeros({2, 32}, DType::i64);
  EXPECT_NE(error_of([&] { packed_type(tensor, std::nullopt, 1); }).find("i64"), std::string::npos);
}

}  // namespace
}  // namespace minimind
