#pragma once

#include <string>
#include <vector>

#include "weights/gguf/metadata.h"
#include "weights/io/output_file.h"
#include "weights/tensor/output_tensor.h"

namespace minimind {

// Everything of a GGUF file, version 3, that is before the data of its tensors, padded so that the data can follow:
// magic, counts, metadata, and the tensors' names, shapes, types and offsets, byte for byte as the gguf Python package
// writes them. Throws Error for a tensor that GGUF or llama.cpp cannot have, and for general.alignment in the metadata.
std::string gguf_header(const GgufMetadata& metadata, const std::vector<OutputTensor>& tensors);

// Writes version 3 to an empty file: everything of `metadata`, then the tensors in order, encoded on `threads` threads.
// Throws Error, before anything is written, for tensors that GGUF or llama.cpp cannot have (u8 and bool, more than 4
// dimensions, a size of 0, names over 63 bytes) and if general.alignment is set: it is 32, which needs no key.
void write_gguf(OutputFile& out, const GgufMetadata& metadata, const std::vector<OutputTensor>& tensors,
                std::size_t threads);

}  // namespace minimind
