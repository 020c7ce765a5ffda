#pragma once

#include <string>

#include "weights/model/config.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// Checks a checkpoint's tensors, under their canonical names, against the shapes that its config implies. Afterwards
// each tensor is f32, f16, bf16 or a block type, has its shape and is read by the model; none is missing.
// Throws Error naming the first tensor of a wrong shape or type. Otherwise the Error names the first missing or unknown
// tensor, and the number of others, or the first of more than largest_tensor_count. Layers may mix dense FFNs and MoE
// layers. All FFNs must agree on having a gate and biases.
void check_tensors(const StoredTensors& tensors, const Config& config, const std::string& path);

}  // namespace minimind
