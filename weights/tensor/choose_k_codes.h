#pragma once

#include "weights/tensor/block_codes.h"

namespace minimind {

// Choose the codes of the k-quants as llama.cpp does without an importance matrix, byte for byte, for 256 values. See
// CodeChooser in choose_codes.h. Every operation is one of binary32 in a fixed order: the results are those of any
// machine that does not fuse a product with a sum.
void choose_q4_k(const float* values, BlockCodes& out);
void choose_q5_k(const float* values, BlockCodes& out);
void choose_q6_k(const float* values, BlockCodes& out);

}  // namespace minimind
