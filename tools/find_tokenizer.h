#pragma once

#include <optional>
#include <string>

#include "runtime/tokenizer.h"

namespace minimind {

// The path of the tokenizer to use: the one given, else the one that belongs to the model (or to the demo, when `model`
// is empty). Throws Error, saying where was looked, when there is none.
std::string require_tokenizer(const std::string& given, const std::string& model);

// The same, loaded; nothing when none was given and the model has none.
std::optional<Tokenizer> load_tokenizer(const std::string& given, const std::string& model);

}  // namespace minimind
