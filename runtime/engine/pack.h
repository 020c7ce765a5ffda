#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "runtime/engine/huge_page_arena.h"
#include "runtime/engine/packed_matrix.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// How weights are held in memory. As stored is lossless.
enum class WeightType { as_stored, f32, f16, bf16, q8_0, q4_0, iq4_nl };

// "f32", "f16", "bf16", "q8_0", "q4_0", "iq4_nl". Throws UsageError for anything else.
WeightType parse_weight_type(const std::string& name);

// The encoding that a type other than as_stored stands for.
DType dtype_of(WeightType type);

// What a stored matrix [rows, cols] that is asked for as `type` should be held as: that type; f16, where a block type
// cannot hold rows of so many columns; and where the numbers are too large for either, or not finite, as stored. As
// stored, block types that the kernels do not know are f32, which is exact. On `threads` threads looks at every number,
// if it must. Throws Error for a matrix of integers.
DType held_type(const StoredTensor& tensor, WeightType type, std::size_t threads);

// Lays out stored matrices for the kernels. They are handed out at once and filled later, all of them together, so that
// one team of threads shares the work of a whole model.
class Packer {
 public:
  // The matrix that finish() will fill from `tensor` [rows, cols], which must live until then, and which `held` can
  // hold: see held_type. Where the two types are the same, every number stays as it is.
  WeightMatrix add(const StoredTensor& tensor, DType held);

  // Fills everything added, on `threads` threads, and lets go of the files' pages.
  void finish(std::size_t threads);

 private:
  template <class Element>
  WeightMatrix add_as(const StoredTensor& tensor);

  HugePageArena memory_;
  std::vector<std::function<void()>> jobs_;
};

// One matrix alone, as held_type says.
WeightMatrix pack(const StoredTensor& tensor, WeightType type, std::size_t threads);

}  // namespace minimind
