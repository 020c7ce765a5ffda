#pragma once

#include <bit>
#include <cstdint>

namespace minimind {

// IEEE 754 binary16 and the upper half of a binary32 ("brain float"), as bits. They are storage types: convert them
// with to_f32 before computing.
struct F16 {
  std::uint16_t bits;
};
struct Bf16 {
  std::uint16_t bits;
};

// Exact: every binary16 is a binary32. Subnormals, infinities and NaN payloads are kept.
inline float to_f32(F16 value) {
  const std::uint32_t sign = std::uint32_t{value.bits & 0x8000u} << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 0x1Fu;
  const std::uint32_t mantissa = value.bits & 0x3FFu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent == 0) {
    // A subnormal is mantissa * 2^-24, which is a normal binary32.
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

// Round to nearest, ties to even; values over the range become infinity, as in IEEE 754 and PyTorch. to_f16 is always
// inlined, because the kernels' objects may not export a symbol that the linker could share.
[[gnu::always_inline]] inline F16 to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint16_t sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return F16{static_cast<std::uint16_t>(sign | 0x7E00u)};
  if (magnitude >= 0x477FF000u) return F16{static_cast<std::uint16_t>(sign | 0x7C00u)};
  if (magnitude < 0x38800000u) {
    // Adding 0.5 aligns the subnormal's last bit with the sum's last bit, so that the FPU rounds.
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
