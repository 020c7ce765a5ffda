#pragma once

#include <string>

#include "weights/gguf.h"

namespace minimind {

// A value for people to read: 768, 1e-06, true, "qwen3", [1, 2], "6400 strings". Long texts are cut, and say how long
// they are.
std::string shown(const GgufValue& value);

}  // namespace minimind
