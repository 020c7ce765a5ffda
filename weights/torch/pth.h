#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "weights/io/mapped_file.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// Whether the bytes begin as torch.save writes them: a zip archive (torch >= 1.6) or the legacy magic number. The
// file's name is not asked.
bool looks_like_pth(std::span<const std::byte> bytes);

// The state dict of a torch.save file, under the names it has there (prefixes such as `module.` are kept).
//
// A training checkpoint is a dict that holds the state dict under `model` (MiniMind's resume files), `state_dict`,
// `model_state_dict` or `module`; what stands beside it, the optimizer's tensors included, is not returned.
// Contiguous tensors are views of the file. Others are copied into row-major order; the copies of one file may take
// twice its size at most, and none may be larger than the storage it is read from, so an expanded tensor (stride 0)
// that would outgrow its storage is refused.
//
// Throws Error, and has executed nothing, for a file that is damaged, is TorchScript, was written on a big-endian
// machine, or is not a state dict of plain strided tensors.
StoredTensors read_pth(std::shared_ptr<const MappedFile> file);

}  // namespace minimind
