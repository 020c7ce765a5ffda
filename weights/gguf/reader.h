#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weights/gguf/metadata.h"
#include "weights/io/input_file.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// GGUF, as https://github.com/ggml-org/ggml/blob/master/docs/gguf.md describes it: typed metadata, then tensors.

struct GgufFile {
  std::uint32_t version = 3;
  GgufMetadata metadata;
  StoredTensors tensors;  // under the file's names, shapes outermost first
};

// Returns true if the file starts with GGUF's magic.
bool looks_like_gguf(std::span<const std::byte> bytes);

// Reads versions 2 and 3, little-endian. Tensors stay in the file; there may be none, as in llama.cpp's vocabulary
// files. As in ggml, every byte of the data must belong to exactly one tensor or to its padding; at most 1 MiB of zeros
// may follow, because some tools pad whole files. The metadata takes at most twice its size in the file. Throws
// Error, naming the file and the key or tensor, for anything corrupt or out of bounds. Big-endian files, other
// versions, tensor types that are not in DType and parts of a split file are rejected, naming them. Our own limits: 64
// MB of metadata and names, 4096 keys, 65536 tensors.
GgufFile read_gguf(std::shared_ptr<const InputFile> file);

}  // namespace minimind
