#include "weights/tensor/dtype.h"
#include "weights/tensor/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace minimind {
namespace {

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

bool is_nan(F16 value) {
  return (value.bits & 0x7FFFu) > 0x7C00u;
}

// The value of a finite binary16, by the definition in IEEE 754 section 3.4.
double f16_by_definition(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1F;
  const int mantissa = bits & 0x3FF;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

// The finite binary16 nearest to `value`, of two equally near ones the even one; beyond the largest by half a step or
// more, infinity. By search, so that it shares nothing with to_f16.
std::uint16_t nearest_f16(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (magnitude >= 65520.0) return sign | 0x7C00;
  std::uint16_t low = 0;
  std::uint16_t high = 0x7BFF;
  while (low < high) {  // ends at the last one that is not larger
    const auto middle = static_cast<std::uint16_t>((low + high + 1) / 2);
    if (f16_by_definition(middle) <= magnitude) {
      low = middle;
    } else {
      high = static_cast<std::uint16_t>(middle - 1);
    }
  }
  if (low == 0x7BFF) return sign | low;
  const auto next = static_cast<std::uint16_t>(low + 1);
  const double below = magnitude - f16_by_definition(low);
  const double above = f16_by_definition(next) - magnitude;
  const bool up = above < below || (above == below && low % 2 == 1);
  return static_cast<std::uint16_t>(sign | (up ? next : low));
}

TEST(DType, SizesAreThoseOfTheEncodings) {
  EXPECT_EQ(size_of(DType::f64), 8u);
  EXPECT_EQ(size_of(DType::i64), 8u);
  EXPECT_EQ(size_of(DType::f32), 4u);
  EXPECT_EQ(size_of(DType::i32), 4u);
  EXPECT_EQ(size_of(DType::f16), 2u);
  EXPECT_EQ(size_of(DType::bf16), 2u);
  EXPECT_EQ(size_of(DType::i16), 2u);
  EXPECT_EQ(size_of(DType::i8), 1u);
  EXPECT_EQ(size_of(DType::u8), 1u);
  EXPECT_EQ(size_of(DType::boolean), 1u);
}

TEST(DType, EveryFiniteF16ConvertsToItsValueAndBack) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const F16 half{static_cast<std::uint16_t>(bits)};
    if ((bits & 0x7C00) == 0x7C00) continue;
    ASSERT_EQ(to_f32(half), f16_by_definition(half.bits)) << bits;
    ASSERT_EQ(std::signbit(to_f32(half)), (bits & 0x8000) != 0) << bits;
    ASSERT_EQ(to_f16(to_f32(half)).bits, half.bits);
  }
}

TEST(DType, F16InfinitiesAndNansKeepTheirKind) {
  EXPECT_EQ(to_f32(F16{0x7C00}), std::numeric_limits<float>::infinity());
  EXPECT_EQ(to_f32(F16{0xFC00}), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(bits_of(to_f32(F16{0xFE01})), 0xFFC02000u);
  EXPECT_EQ(to_f16(std::numeric_limits<float>::infinity()).bits, 0x7C00);
  EXPECT_EQ(to_f16(-std::numeric_limits<float>::infinity()).bits, 0xFC00);
  EXPECT_TRUE(is_nan(to_f16(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(is_nan(to_f16(std::bit_cast<float>(0x7F800001u))));  // its payload is lost by truncation
}

// Between each two neighbouring values of binary16: the middle, and the floats next to it.
TEST(DType, ToF16RoundsToNearestTiesToEven) {
  for (std::uint16_t bits = 0; bits < 0x7C00; ++bits) {
    const double low = f16_by_definition(bits);
    const double high = bits == 0x7BFF ? 65536.0 : f16_by_definition(static_cast<std::uint16_t>(bits + 1));
    const float middle = static_cast<float>((low + high) / 2);
    for (const float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e30f)}) {
      ASSERT_EQ(to_f16(value).bits, nearest_f16(value)) << value;
      ASSERT_EQ(to_f16(-value).bits, nearest_f16(-value)) << -value;
    }
  }
}

TEST(DType, ToF16TakesTheExtremesOfFloat) {
  EXPECT_EQ(to_f16(std::numeric_limits<float>::max()).bits, 0x7C00);
  EXPECT_EQ(to_f16(std::numeric_limits<float>::denorm_min()).bits, 0);
  EXPECT_EQ(to_f16(-std::numeric_limits<float>::min()).bits, 0x8000);
}

TEST(DType, EveryBf16IsTheUpperHalfOfAFloatAndConvertsBack) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const Bf16 brain{static_cast<std::uint16_t>(bits)};
    ASSERT_EQ(bits_of(to_f32(brain)), bits << 16);
    const bool nan = (bits & 0x7FFF) > 0x7F80;
    // A NaN that signals becomes quiet.
    ASSERT_EQ(to_bf16(to_f32(brain)).bits, nan ? (bits | 0x40) : bits);
  }
}

TEST(DType, ToBf16RoundsToNearestTiesToEven) {
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3F807FFFu)).bits, 0x3F80);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3F808000u)).bits, 0x3F80);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3F808001u)).bits, 0x3F81);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3F818000u)).bits, 0x3F82);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits, 0x7F80);
}

}  // namespace
}  // namespace minimind
