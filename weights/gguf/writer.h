#pragma once

#include <string>
#include <vector>

#include "weights/gguf/metadata.h"
#include "weights/io/output_file.h"
#include "weights/tensor/output_tensor.h"

namespace minimind {

// Returns the part of a GGUF file, version 3, before its tensor data: magic, counts, metadata, and the tensors' names,
// shapes, types and offsets. It is padded so that the data can follow, and is byte for byte that of the gguf Python
// package. Throws Error for a tensor that GGUF or llama.cpp rejects, and for general.alignment in the metadata.
std::string gguf_header(const GgufMetadata& metadata, const std::vector<OutputTensor>& tensors);

// Writes version 3 to an empty file: all of `metadata`, then the tensors in order, encoded on `threads` threads. Throws
// Error, before anything is written, for tensors that GGUF or llama.cpp rejects: u8 and bool, more than 4 dimensions, a
// size of 0, names over 63 bytes. general.alignment must not be set: it is 32, which needs no key.
void write_gguf(OutputFile& out, const GgufMetadata& metadata, const std::vector<OutputTensor>& tensors,
                std::size_t threads);

}  // namespace minimind
