#pragma once

#include "weights/tensor/block_codes.h"
#include "weights/tensor/dtype.h"

namespace minimind {

// Chooses the integers and scales of a block for block_shape(type).elements finite values, for a type that can_quantize
// (block_formats.h). The result is equal on every machine. q8_0 and q4_0 are those of the `gguf` package; iq4_nl
// has the scale of the smallest squared error among eight trials. Throws Error for any other type.
void choose_codes(DType type, const float* values, BlockCodes& out);

// For such a type: no scale exceeds the largest magnitude divided by this bound.
float scale_divisor(DType type);

}  // namespace minimind
