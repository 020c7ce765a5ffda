#pragma once

#include <optional>
#include <string>

#include "runtime/tokenizer/tokenizer.h"
#include "weights/model/config.h"

namespace minimind {

// Where the tokenizer given is, else the one that belongs to the model (or to the demo, when `model` is empty). Throws
// Error, saying where was looked, when there is none.
std::string require_tokenizer_path(const std::string& given, const std::string& model);

// That tokenizer. Throws Error as load_tokenizer() does, too.
Tokenizer require_tokenizer(const std::string& given, const std::string& model);

// The same for work that needs no tokenizer: std::nullopt if none was given and the model has none, or if the model is
// a GGUF with a kind of tokenizer that cannot be read, which is said on standard error.
std::optional<Tokenizer> optional_tokenizer(const std::string& given, const std::string& model);

// Says on standard error if a tokenizer cannot be that of the model: its text would be nonsense.
void warn_of_misfit(const Tokenizer& tokenizer, const Config& config);

}  // namespace minimind
