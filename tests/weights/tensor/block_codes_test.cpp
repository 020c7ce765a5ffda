#include "weights/tensor/block_codes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "weights/tensor/block_formats.h"
#include "weights/tensor/dtype.h"

namespace minimind {
namespace {

std::vector<DType> types_with_codes() {
  std::vector<DType> types;
  for (const DTypeRow& row : dtype_rows) {
    if (has_block_codes(row.type)) types.push_back(row.type);
  }
  return types;
}

std::vector<std::byte> packed(DType type, const BlockCodes& codes) {
  std::vector<std::byte> block(block_shape(type).bytes);
  pack_block(type, codes, block.data());
  return block;
}

std::size_t parts_of(DType type) {
  return block_shape(type).elements / code_ranges(type).part;
}

// All integers of all ranges occur, so that an integer that loses a bit is seen.
BlockCodes drawn_codes(DType type, std::mt19937& random) {
  const CodeRanges ranges = code_ranges(type);
  const auto drawn = [&](IntegerRange range) {
    return static_cast<int>(random() % static_cast<unsigned>(range.highest - range.lowest + 1)) + range.lowest;
  };
  BlockCodes codes{};
  codes.scale = F16{static_cast<std::uint16_t>(random() % 0x7C00)};
  if (ranges.minima.highest > 0) codes.minimum = F16{static_cast<std::uint16_t>(random() % 0x7C00 | 0x8000)};
  for (std::size_t i = 0; i < block_shape(type).elements; ++i) {
    const int code = ranges.book.empty() ? drawn(ranges.codes) : ranges.book[random() % ranges.book.size()];
    codes.codes[i] = static_cast<std::int8_t>(code);
  }
  for (std::size_t p = 0; p < parts_of(type); ++p) {
    codes.part_scales[p] = static_cast<std::int8_t>(drawn(ranges.scales));
    codes.part_minima[p] = static_cast<std::uint8_t>(drawn(ranges.minima));
  }
  return codes;
}

// The formula of BlockCodes.
float value_at(DType type, const BlockCodes& codes, std::size_t i) {
  const std::size_t part = i / code_ranges(type).part;
  const float scale = to_f32(codes.scale) * static_cast<float>(codes.part_scales[part]);
  const float minimum = to_f32(codes.minimum) * static_cast<float>(codes.part_minima[part]);
  const float product = scale * static_cast<float>(codes.codes[i]);
  return product - minimum;
}

TEST(BlockCodes, AreThoseOfTheTypesThatQuantizeWritesAndMore) {
  EXPECT_EQ(types_with_codes().size(), 13u);
  for (const DTypeRow& row : dtype_rows) {
    EXPECT_TRUE(has_block_codes(row.type) || !can_quantize(row.type)) << row.name;
  }
}

TEST(BlockCodes, APackedBlockHasExactlyTheValuesOfItsCodes) {
  std::mt19937 random(1);
  for (const DType type : types_with_codes()) {
    const std::size_t count = block_shape(type).elements;
    for (int i = 0; i < 200; ++i) {
      const BlockCodes codes = drawn_codes(type, random);
      std::vector<float> read(count);
      dequantize(type, packed(type, codes).data(), count, read.data());
      for (std::size_t k = 0; k < count; ++k) {
        ASSERT_EQ(read[k], value_at(type, codes, k)) << name_of(type) << " " << k;
      }
    }
  }
}

TEST(BlockCodes, UnpackingReturnsWhatWasPacked) {
  std::mt19937 random(2);
  for (const DType type : types_with_codes()) {
    for (int i = 0; i < 200; ++i) {
      const BlockCodes codes = drawn_codes(type, random);
      BlockCodes unpacked;
      unpack_block(type, packed(type, codes).data(), unpacked);
      EXPECT_EQ(unpacked.scale.bits, codes.scale.bits) << name_of(type);
      EXPECT_EQ(unpacked.minimum.bits, codes.minimum.bits) << name_of(type);
      const std::size_t count = block_shape(type).elements, parts = parts_of(type);
      EXPECT_TRUE(std::equal(codes.codes, codes.codes + count, unpacked.codes)) << name_of(type);
      EXPECT_TRUE(std::equal(codes.part_scales, codes.part_scales + parts, unpacked.part_scales)) << name_of(type);
      EXPECT_TRUE(std::equal(codes.part_minima, codes.part_minima + parts, unpacked.part_minima)) << name_of(type);
    }
  }
}

// Every bit of a block is a bit of one of its fields.
TEST(BlockCodes, PackingReturnsAnyBytesThatWereUnpacked) {
  std::mt19937 random(3);
  for (const DType type : types_with_codes()) {
    std::vector<std::byte> block(block_shape(type).bytes);
    for (int i = 0; i < 200; ++i) {
      for (std::byte& byte : block) byte = static_cast<std::byte>(random());
      BlockCodes codes;
      unpack_block(type, block.data(), codes);
      EXPECT_EQ(packed(type, codes), block) << name_of(type);
    }
  }
}

TEST(BlockCodes, UnpackedIntegersAreInTheirRanges) {
  std::mt19937 random(4);
  for (const DType type : types_with_codes()) {
    const CodeRanges ranges = code_ranges(type);
    std::vector<std::byte> block(block_shape(type).bytes);
    for (int i = 0; i < 200; ++i) {
      for (std::byte& byte : block) byte = static_cast<std::byte>(random());
      BlockCodes codes;
      unpack_block(type, block.data(), codes);
      for (std::size_t k = 0; k < block_shape(type).elements; ++k) {
        ASSERT_GE(codes.codes[k], ranges.codes.lowest) << name_of(type);
        ASSERT_LE(codes.codes[k], ranges.codes.highest) << name_of(type);
        if (!ranges.book.empty()) {
          ASSERT_TRUE(std::binary_search(ranges.book.begin(), ranges.book.end(), codes.codes[k])) << name_of(type);
        }
      }
      for (std::size_t p = 0; p < parts_of(type); ++p) {
        ASSERT_GE(codes.part_scales[p], ranges.scales.lowest) << name_of(type);
        ASSERT_LE(codes.part_scales[p], ranges.scales.highest) << name_of(type);
        ASSERT_GE(codes.part_minima[p], ranges.minima.lowest) << name_of(type);
        ASSERT_LE(codes.part_minima[p], ranges.minima.highest) << name_of(type);
      }
    }
  }
}

}  // namespace
}  // namespace minimind
