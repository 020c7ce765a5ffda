#pragma once

#include <optional>

#include "weights/tensor/block_codes.h"
#include "weights/tensor/dtype.h"

namespace minimind {

// How a type that has_block_codes is written.
struct CodeChooser {
  DType type;

  // Chooses the integers and scales of a block for block_shape(type).elements finite values. The result is equal on
  // every machine. The types of 32 values are bit for bit those of the `gguf` package, except for iq4_nl, which has the
  // scale of the smallest squared error among eight trials; the k-quants are those of llama.cpp without an importance
  // matrix.
  void (*choose)(const float* values, BlockCodes& out);

  // As in BlockFormat (block_formats.h).
  float scale_divisor;
  std::optional<DType> shorter = std::nullopt;
};

// Returns null for a type that is only read, and for q8_0, which block_formats.cpp writes.
const CodeChooser* find_code_chooser(DType type);

}  // namespace minimind
