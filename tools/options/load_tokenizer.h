#pragma once

#include <optional>
#include <string>

#include "runtime/tokenizer/tokenizer.h"
#include "weights/model/config.h"

namespace minimind {

// Where the tokenizer given is, else the one that belongs to the model (or to the demo, when `model` is empty). Throws
// Error, saying where was looked, when there is none.
std::string require_tokenizer_path(const std::string& given, const std::string& model);

// That tokenizer. Throws Error as Tokenizer::load does, too.
Tokenizer require_tokenizer(const std::string& given, const std::string& model);

// The same for work that can go on without: nothing when none was given and the model has none, or when a GGUF has one
// of a kind that we do not have, which is said on standard error.
std::optional<Tokenizer> load_tokenizer(const std::string& given, const std::string& model);

// Says on standard error that a tokenizer, which is from `path`, cannot be that of the model, if so: its text would be
// nonsense.
void warn_of_misfit(const Tokenizer& tokenizer, const std::string& path, const Config& config);

}  // namespace minimind
