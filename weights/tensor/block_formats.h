#pragma once

#include <cstddef>
#include <cstdint>

#include "weights/tensor/dtype.h"

namespace minimind {

// The block formats of GGUF: 32 or 256 consecutive values of a row share scales. Facts from ggml's ggml-common.h and
// the `gguf` Python package. Where a block has its fields: block_codes.h; which integers a quantiser chooses:
// choose_codes.h.

// Returns true if quantize can write this type.
constexpr bool can_quantize(DType type) {
  switch (type) {
    case DType::q8_0:
    case DType::q4_0:
    case DType::q4_1:
    case DType::q5_0:
    case DType::q5_1:
    case DType::iq4_nl:
    case DType::q4_k:
    case DType::q5_k:
    case DType::q6_k:
      return true;
    default:
      return false;
  }
}

// Decodes `count` values, a multiple of block_shape(type).elements, from blocks as they are in a GGUF file. Accepts any
// block type, bit for bit as the `gguf` package reads it. Any bytes are valid: they may represent infinities and NaN.
void dequantize(DType type, const std::byte* blocks, std::size_t count, float* out);

// Encodes values as blocks, for a type that can_quantize, as choose_codes chooses them. Values must be finite, and
// their scales (see scale_divisor) must fit a binary16: see can_encode in output_tensor.h.
void quantize(DType type, const float* values, std::size_t count, std::byte* out);

}  // namespace minimind
