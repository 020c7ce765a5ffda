#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "weights/io/mapped_file.h"
#include "weights/io/output_file.h"
#include "weights/tensor/output_tensor.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// Whether the bytes start as a safetensors file does: the size of a header that the format allows, then its '{'. The
// file's name is not asked.
bool looks_like_safetensors(std::span<const std::byte> bytes);

// The tensors of one safetensors file, as views of it. `__metadata__` is checked and not returned.
//
// Throws Error for a header that is not the JSON the format describes, has two entries of one name or is larger than
// 32 MiB (the format allows 100 MB; MiniMind's are below 100 KB), for an element type outside DType, and for
// data_offsets that do not fit the shape or that together do not cover the data exactly, without overlap.
StoredTensors read_safetensors(std::shared_ptr<const MappedFile> file);

// Writes a .safetensors file that says {"format": "pt"}, as transformers demands. Throws Error for a tensor that is not
// f32, f16 or bf16. The file is still to be committed.
void write_safetensors(OutputFile& file, const std::vector<OutputTensor>& tensors, std::size_t threads);

}  // namespace minimind
