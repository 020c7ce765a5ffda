#pragma once

#include "weights/tensor/block_codes.h"
#include "weights/tensor/dtype.h"

namespace minimind {

// Chooses the integers and scales of a block for block_shape(type).elements finite values, for a type that can_quantize
// (block_formats.h) other than q8_0. The result is equal on every machine. The types of 32 values are bit for bit those
// of the `gguf` package, except for iq4_nl, which has the scale of the smallest squared error among eight trials; the
// k-quants are those of llama.cpp without an importance matrix. Throws Error for any other type.
void choose_codes(DType type, const float* values, BlockCodes& out);

}  // namespace minimind
