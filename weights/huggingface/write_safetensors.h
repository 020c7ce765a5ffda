#pragma once

#include <cstddef>
#include <vector>

#include "weights/io/output_file.h"
#include "weights/tensor/output_tensor.h"

namespace minimind {

// Writes a .safetensors file that says {"format": "pt"}, as transformers demands. Throws Error for a tensor that is not
// f32, f16 or bf16. The file is still to be committed.
void write_safetensors(OutputFile& file, const std::vector<OutputTensor>& tensors, std::size_t threads);

}  // namespace minimind
