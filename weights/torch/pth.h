#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weights/io/input_file.h"
#include "weights/io/output_file.h"
#include "weights/tensor/output_tensor.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// Returns true if the bytes start as those of torch.save: a zip archive (torch >= 1.6) or the legacy magic number.
// Ignores the file's name.
bool looks_like_pth(std::span<const std::byte> bytes);

// Returns the state dict of a torch.save file, under its own names (prefixes such as `module.` are kept).
//
// A training checkpoint is a dict whose state dict is under `model` (MiniMind's resume files), `state_dict`,
// `model_state_dict` or `module`. Its other entries, such as the optimizer's tensors, are not returned. Contiguous
// tensors stay in the file; others are copied into row-major order. The copies of one file take at most twice its size
// and 4 GiB, and none is larger than its storage. So an expanded tensor (stride 0) that would outgrow its storage is
// rejected.
//
// Executes nothing. Throws Error for a file that is corrupt, is TorchScript, was written on a big-endian machine, or is
// not a state dict of plain strided tensors.
StoredTensors read_pth(std::shared_ptr<const InputFile> file);

// Writes a file like that of torch.save(state_dict): an OrderedDict from names to tensors, readable by
// torch.load(weights_only=True), mapped too. `tied` are further names, each with the name of the tensor whose storage
// it shares. Throws Error for a tensor that is not f32, f16 or bf16. The caller must still commit the file.
void write_pth(OutputFile& file, const std::vector<OutputTensor>& tensors,
               const std::vector<std::pair<std::string, std::string>>& tied, std::size_t threads);

}  // namespace minimind
