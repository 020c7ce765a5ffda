#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "weights/io/output_file.h"
#include "weights/tensor/output_tensor.h"

namespace minimind {

// Writes a file like that of torch.save(state_dict): an OrderedDict from names to tensors, readable by
// torch.load(weights_only=True), mapped too. `tied` are further names, each with the name of the tensor whose storage
// it shares. Throws Error for a tensor that is not f32, f16 or bf16. The caller must still commit the file.
void write_pth(OutputFile& file, const std::vector<OutputTensor>& tensors,
               const std::vector<std::pair<std::string, std::string>>& tied, std::size_t threads);

}  // namespace minimind
