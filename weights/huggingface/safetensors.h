#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "weights/io/input_file.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// Returns true if the bytes start as a safetensors file: a header size that the format allows, then '{'. Ignores the
// file's name.
bool looks_like_safetensors(std::span<const std::byte> bytes);

// Returns the tensors of one safetensors file, and in `metadata`, if given, its `__metadata__`, which is always
// checked.
//
// Throws Error for a header that is not the JSON of the format, repeats a name, is over 32 MiB (the format allows 100
// MB; MiniMind's are below 100 KB) or has more than 65536 tensors. An element type outside DType, and data_offsets that
// do not fit the shape, also throw Error. All data_offsets together must cover the data exactly, without overlap.
StoredTensors read_safetensors(std::shared_ptr<const InputFile> file,
                               std::map<std::string, std::string>* metadata = nullptr);

}  // namespace minimind
