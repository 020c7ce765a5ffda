#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weights/io/mapped_file.h"
#include "weights/io/output_file.h"
#include "weights/tensor/output_tensor.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// Whether the bytes start as torch.save writes them: a zip archive (torch >= 1.6) or the legacy magic number. The
// file's name is ignored.
bool looks_like_pth(std::span<const std::byte> bytes);

// The state dict of a torch.save file, under the names it has there (prefixes such as `module.` are kept).
//
// A training checkpoint is a dict that holds the state dict under `model` (MiniMind's resume files), `state_dict`,
// `model_state_dict` or `module`; what is next to it, the optimizer's tensors included, is not returned.
// Contiguous tensors are views of the file. Others are copied into row-major order; the copies of one file may take
// twice its size at most, and none may be larger than the storage it is read from, so an expanded tensor (stride 0)
// that would outgrow its storage is rejected.
//
// Throws Error, and has executed nothing, for a file that is corrupt, is TorchScript, was written on a big-endian
// machine, or is not a state dict of plain strided tensors.
StoredTensors read_pth(std::shared_ptr<const MappedFile> file);

// Writes what torch.save(state_dict) does: an OrderedDict from names to tensors, readable by
// torch.load(weights_only=True), mapped too. `tied` are further names, each with the name of the tensor whose storage
// it shares. Throws Error for a tensor that is not f32, f16 or bf16. The file is still to be committed.
void write_pth(OutputFile& file, const std::vector<OutputTensor>& tensors,
               const std::vector<std::pair<std::string, std::string>>& tied, std::size_t threads);

}  // namespace minimind
