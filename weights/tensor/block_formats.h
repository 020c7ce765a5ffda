#pragma once

#include <cstddef>
#include <span>

#include "weights/tensor/dtype.h"

namespace minimind {

// How blocks of a type are decoded and encoded: 32 or 256 consecutive values of a row share scales. Facts from ggml's
// ggml-common.h and the `gguf` Python package.
struct BlockFormat {
  DType type;
  void (*dequantize)(const std::byte* blocks, std::size_t count, float* out);
  void (*quantize)(const float* values, std::size_t count, std::byte* out) = nullptr;  // null: cannot be written
  // No binary16 of a block that quantize writes exceeds the largest magnitude divided by this bound.
  float scale_divisor = 0;
};

// The formats of this program besides q8_0, which is always there. Every program defines its list:
// all_block_formats.cpp has that of all of GGUF's.
extern const std::span<const BlockFormat> more_block_formats;

// Returns true if quantize can write this type.
bool can_quantize(DType type);

// Returns BlockFormat::scale_divisor of a type that can_quantize.
float scale_divisor(DType type);

// Decodes `count` values, a multiple of block_shape(type).elements, from blocks as they are in a GGUF file. Accepts any
// block type of this program, bit for bit as the `gguf` package reads it. Any bytes are valid: they may represent
// infinities and NaN.
void dequantize(DType type, const std::byte* blocks, std::size_t count, float* out);

// Encodes values as blocks, for a type that can_quantize. Values must be finite, and their scales (see scale_divisor)
// must fit a binary16: see can_encode in encode_values.h. Throws Error for another type.
void quantize(DType type, const float* values, std::size_t count, std::byte* out);

}  // namespace minimind
