#pragma once

#include <string>
#include <vector>

#include "weights/tensor/stored_tensor.h"

namespace minimind {

// Tensors of one type and shape whose names differ only in the numbers of their layers and experts.
struct FoldedTensors {
  std::string name;  // "model.layers.0-7.mlp.experts.0-3.up_proj.weight"
  DType dtype = DType::f32;
  std::vector<std::size_t> shape;
};

// Returns every tensor once, alone or in a fold, in the order of the first of each fold.
std::vector<FoldedTensors> fold_tensors(const StoredTensors& tensors);

}  // namespace minimind
