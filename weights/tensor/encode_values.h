#pragma once

#include <cstddef>
#include <functional>

#include "weights/tensor/dtype.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// Returns true if `dtype`, a float type or a block type that quantize can write, can represent every value of `source`
// after rounding. A block type requires rows that are whole blocks and finite values whose scales fit a binary16. For a
// float type, no finite value may become infinite. Reads every value if necessary, those of block types on `threads`
// threads.
bool can_encode(const StoredTensor& source, DType dtype, std::size_t threads);

// Returns the type for a matrix of `cols` columns that is requested as `wanted`: `wanted` if it fits. If the rows are
// not whole blocks of `wanted`: its BlockFormat::shorter, as llama.cpp, if there is one that fits; else f16 if it fits.
// `lossless` if none does.
DType type_or_fallback(DType wanted, DType lossless, std::size_t cols, const std::function<bool(DType)>& fits);

// Writes `count` values as `dtype`, which must be able to represent them: see can_encode.
void encode_values(DType dtype, const float* values, std::size_t count, std::byte* out);

}  // namespace minimind
