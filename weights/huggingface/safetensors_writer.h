#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "weights/io/output_file.h"
#include "weights/tensor/output_tensor.h"

namespace minimind {

// Writes a .safetensors file with this metadata; transformers requires {"format": "pt"}. Throws Error for a tensor that
// is not f32, f16 or bf16. The caller must still commit the file.
void write_safetensors(OutputFile& file, const std::vector<OutputTensor>& tensors, std::size_t threads,
                       const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

}  // namespace minimind
