#pragma once

#include <string>

#include "weights/gguf/metadata.h"

namespace minimind {

// A value for people to read: 768, 1e-06, true, "qwen3", [1, 2], "6400 strings". Long texts are cut, and say how long
// they are.
std::string shown(const GgufValue& value);

// A number of the metadata as it was meant: a float32 is the shortest decimal that gives it, 1e-06 and not
// 9.999999974752427e-07.
double as_meant(double value, GgufType type);

}  // namespace minimind
