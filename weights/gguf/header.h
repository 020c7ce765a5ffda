#pragma once

#include <string>
#include <vector>

#include "weights/gguf/reader.h"
#include "weights/tensor/output_tensor.h"

namespace minimind {

// Everything of a GGUF file, version 3, that is before the data of its tensors, padded so that the data can follow:
// magic, counts, metadata, and the tensors' names, shapes, types and offsets, byte for byte as the gguf Python package
// writes them. Throws Error for a tensor that GGUF or llama.cpp cannot have, and for general.alignment in the metadata.
std::string gguf_header(const GgufMetadata& metadata, const std::vector<OutputTensor>& tensors);

}  // namespace minimind
