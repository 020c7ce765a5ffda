#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace minimind {

// How the numbers of a stored tensor are encoded. Everything is little-endian. From q8_0 on they are the block formats
// of GGUF: consecutive numbers of a row share scales; see quantize.h.
enum class DType {
  f32,
  f16,
  bf16,
  f64,
  i64,
  i32,
  i16,
  i8,
  u8,
  boolean,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  q2_k,
  q3_k,
  iq4_xs,
  iq3_s,
  iq3_xxs,
  iq2_s,
  iq2_xs,
  iq2_xxs,
  iq1_m,
  iq1_s,
  tq1_0,
  tq2_0,
  mxfp4,
  nvfp4
};

// The smallest unit of an encoding: so many numbers in so many bytes. One number, where it is no block format.
struct BlockShape {
  std::size_t elements;
  std::size_t bytes;
};

// IEEE 754 binary16 and the upper half of a binary32 ("brain float"), as bits. They are storage, not arithmetic:
// convert with to_f32.
struct F16 {
  std::uint16_t bits;
};
struct Bf16 {
  std::uint16_t bits;
};

constexpr BlockShape block_shape(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64:
      return {1, 8};
    case DType::f32:
    case DType::i32:
      return {1, 4};
    case DType::f16:
    case DType::bf16:
    case DType::i16:
      return {1, 2};
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return {1, 1};
    case DType::q8_0:
      return {32, 34};
    case DType::q4_0:
    case DType::iq4_nl:
      return {32, 18};
    case DType::q4_1:
      return {32, 20};
    case DType::q5_0:
      return {32, 22};
    case DType::q5_1:
      return {32, 24};
    case DType::q4_k:
      return {256, 144};
    case DType::q5_k:
      return {256, 176};
    case DType::q6_k:
      return {256, 210};
    case DType::q2_k:
      return {256, 84};
    case DType::q3_k:
    case DType::iq3_s:
      return {256, 110};
    case DType::iq4_xs:
      return {256, 136};
    case DType::iq3_xxs:
      return {256, 98};
    case DType::iq2_s:
      return {256, 82};
    case DType::iq2_xs:
      return {256, 74};
    case DType::iq2_xxs:
    case DType::tq2_0:
      return {256, 66};
    case DType::iq1_m:
      return {256, 56};
    case DType::iq1_s:
      return {256, 50};
    case DType::tq1_0:
      return {256, 54};
    case DType::mxfp4:
      return {32, 17};
    case DType::nvfp4:
      return {64, 36};
  }
  return {0, 0};
}

constexpr bool is_block_type(DType type) {
  return block_shape(type).elements > 1;
}

// f32, f16 and bf16: what weights are trained and computed in.
constexpr bool is_float_type(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

// Bytes of one number. Not for block types, which have none.
constexpr std::size_t size_of(DType type) {
  return is_block_type(type) ? 0 : block_shape(type).bytes;
}

constexpr std::string_view name_of(DType type) {
  switch (type) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::f64:
      return "f64";
    case DType::i64:
      return "i64";
    case DType::i32:
      return "i32";
    case DType::i16:
      return "i16";
    case DType::i8:
      return "i8";
    case DType::u8:
      return "u8";
    case DType::boolean:
      return "bool";
    case DType::q8_0:
      return "q8_0";
    case DType::q4_0:
      return "q4_0";
    case DType::q4_1:
      return "q4_1";
    case DType::q5_0:
      return "q5_0";
    case DType::q5_1:
      return "q5_1";
    case DType::q4_k:
      return "q4_k";
    case DType::q5_k:
      return "q5_k";
    case DType::q6_k:
      return "q6_k";
    case DType::iq4_nl:
      return "iq4_nl";
    case DType::q2_k:
      return "q2_k";
    case DType::q3_k:
      return "q3_k";
    case DType::iq4_xs:
      return "iq4_xs";
    case DType::iq3_s:
      return "iq3_s";
    case DType::iq3_xxs:
      return "iq3_xxs";
    case DType::iq2_s:
      return "iq2_s";
    case DType::iq2_xs:
      return "iq2_xs";
    case DType::iq2_xxs:
      return "iq2_xxs";
    case DType::iq1_m:
      return "iq1_m";
    case DType::iq1_s:
      return "iq1_s";
    case DType::tq1_0:
      return "tq1_0";
    case DType::tq2_0:
      return "tq2_0";
    case DType::mxfp4:
      return "mxfp4";
    case DType::nvfp4:
      return "nvfp4";
  }
  return "unknown";
}

// Exact: every binary16 is a binary32. Subnormals, infinities and NaN payloads are kept.
inline float to_f32(F16 value) {
  const std::uint32_t sign = std::uint32_t{value.bits & 0x8000u} << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 0x1Fu;
  const std::uint32_t mantissa = value.bits & 0x3FFu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent == 0) {
    // A subnormal is mantissa * 2^-24, which binary32 holds as a normal number.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

inline float to_f32(Bf16 value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

inline float to_f32(float value) {
  return value;
}

// Round to nearest, ties to even; too large becomes infinity, as IEEE 754 and PyTorch do.
inline F16 to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint16_t sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return F16{static_cast<std::uint16_t>(sign | 0x7E00u)};
  if (magnitude >= 0x477FF000u) return F16{static_cast<std::uint16_t>(sign | 0x7C00u)};
  if (magnitude < 0x38800000u) {
    // Adding 0.5 puts the subnormal's last bit at the last bit of the sum, so that the FPU does the rounding.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return F16{static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000u))};
  }
  const std::uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return F16{static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
}

inline Bf16 to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return Bf16{static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  return Bf16{static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}

}  // namespace minimind
