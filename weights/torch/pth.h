#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "weights/io/input_file.h"
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

}  // namespace minimind
