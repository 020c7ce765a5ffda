#pragma once

#include <cstdint>
#include <cstring>

#include "weights/tensor/half.h"

namespace minimind {

// ggml's IQ types whose quants are indices into code books. Each function decodes the 256 values of one
// block, of block_shape(type).bytes, as the `gguf` package does. See dequantize in block_formats.h.
void read_iq2_xxs(const std::uint8_t* block, float* out);
void read_iq2_xs(const std::uint8_t* block, float* out);
void read_iq2_s(const std::uint8_t* block, float* out);
void read_iq3_xxs(const std::uint8_t* block, float* out);
void read_iq3_s(const std::uint8_t* block, float* out);
void read_iq1_s(const std::uint8_t* block, float* out);
void read_iq1_m(const std::uint8_t* block, float* out);

// Reads the binary16 at `data`, aligned or not.
inline float scale_at(const std::uint8_t* at) {
  F16 scale;
  std::memcpy(&scale, at, sizeof scale);
  return to_f32(scale);
}

}  // namespace minimind
