#pragma once

#include <cstddef>
#include <optional>

#include "weights/tensor/dtype.h"

namespace minimind {

// How blocks of a type are decoded and encoded: consecutive values of a row that share scales. Facts from ggml's
// ggml-common.h and the `gguf` Python package.
struct BlockFormat {
  void (*dequantize)(DType type, const std::byte* blocks, std::size_t count, float* out);
  // Null: cannot be written.
  void (*quantize)(DType type, const float* values, std::size_t count, std::byte* out) = nullptr;
  // No binary16 of a block that quantize writes exceeds the largest magnitude divided by this bound.
  float scale_divisor = 0;
  // The type of shorter blocks that llama.cpp writes instead if this type's blocks do not divide the columns.
  std::optional<DType> shorter = std::nullopt;
};

// Returns the format of a type other than q8_0, which is always there; std::nullopt if this program lacks it. Every
// program defines it: that of all_block_formats.cpp has all of GGUF's.
std::optional<BlockFormat> more_block_format(DType type);

// Returns the format of any block type. Throws Error if this program lacks it.
BlockFormat block_format(DType type);

// Returns true if quantize can write this type.
bool can_quantize(DType type);

// Decodes `count` values, a multiple of block_shape(type).elements, from blocks as they are in a GGUF file. Accepts any
// block type of this program, bit for bit as the `gguf` package reads it. Any bytes are valid: they may represent
// infinities and NaN.
void dequantize(DType type, const std::byte* blocks, std::size_t count, float* out);

// Encodes values as blocks, for a type that can_quantize. Values must be finite, and their scales (see scale_divisor)
// must fit a binary16: see can_encode in encode_values.h. Throws Error for another type.
void quantize(DType type, const float* values, std::size_t count, std::byte* out);

}  // namespace minimind
