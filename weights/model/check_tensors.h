#pragma once

#include <string>

#include "weights/model/config.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// Checks the tensors of a checkpoint, under their canonical names, against the shapes that its config implies.
// Afterwards every tensor is one that the model reads, has its shape, and is f32, f16 or bf16; none is missing.
// Throws Error that names the first tensor of a wrong shape or type, or else the first that is missing or unknown and
// how many more are. Layers may mix dense FFNs and MoE layers; an FFN may have a gate or not, and
// biases or not.
void check_tensors(const StoredTensors& tensors, const Config& config, const std::string& path);

}  // namespace minimind
