#pragma once

#include <cstddef>
#include <cstdint>

#include "weights/dtype.h"

namespace minimind {

// The block formats of GGUF: 32 numbers share one binary16 scale. What is written here is bit-equal to the reference
// quantiser of the `gguf` Python package.
inline constexpr std::size_t quant_block_size = 32;

struct Q8_0 {  // w = scale * quant
  F16 scale;
  std::int8_t quant[quant_block_size];
};

struct Q4_0 {  // w = scale * (quant - 8)
  F16 scale;
  std::uint8_t quant[quant_block_size];  // 0 to 15, one a byte; a file packs two
};

// Whether quantize can write this type.
constexpr bool can_quantize(DType type) {
  return type == DType::q8_0 || type == DType::q4_0 || type == DType::iq4_nl;
}

// `count` numbers, a multiple of block_shape(type).elements, to and from blocks as they lie in a GGUF file. Any block
// type can be read, bit for bit as the `gguf` package does; values to write must be finite.
void dequantize(DType type, const std::byte* blocks, std::size_t count, float* out);
void quantize(DType type, const float* values, std::size_t count, std::byte* out);

// Values must be finite.
Q8_0 quantize_q8_0(const float (&values)[quant_block_size]);
Q4_0 quantize_q4_0(const float (&values)[quant_block_size]);

}  // namespace minimind
