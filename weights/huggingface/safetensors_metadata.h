#pragma once

#include <map>
#include <string>

#include "weights/io/input_file.h"

namespace minimind {

// Returns `__metadata__` of a file that read_safetensors() has accepted; empty if there is none.
std::map<std::string, std::string> read_safetensors_metadata(const InputFile& file);

}  // namespace minimind
