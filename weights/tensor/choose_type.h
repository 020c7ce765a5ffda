#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "weights/tensor/output_tensor.h"

namespace minimind {

// What was asked for: how matrices are encoded, and, where that is to be different, the token embedding and the output
// matrix. Without a type they stay as they are stored.
struct WantedTypes {
  std::optional<DType> matrices;
  std::optional<DType> embedding;
};

// Decides how each matrix of a file to be written is encoded, and remembers where that is not what was asked for.
class TypeChooser {
 public:
  // `block_types` is whether the file format has them.
  TypeChooser(bool block_types, std::size_t threads) : block_types_(block_types), threads_(threads) {}

  // Sets tensor.dtype of a matrix whose sources are set. Where the type wanted cannot hold it, that is f16 for a block
  // type, and what is stored or else f32 where f16 cannot hold it either.
  void choose(OutputTensor& tensor, std::optional<DType> wanted);

  // "blk.0.attn_q.weight as f16: its 80 columns are no multiple of 32"
  const std::vector<std::string>& exceptions() const { return exceptions_; }

 private:
  bool fits(const OutputTensor& tensor, DType type) const;
  DType stored_type(const OutputTensor& tensor) const;

  bool block_types_;
  std::size_t threads_;
  std::vector<std::string> exceptions_;
};

// Whether every number of `tensor` is the same in `type`, bit for bit.
bool holds_exactly(const StoredTensor& tensor, DType type);

}  // namespace minimind
