#pragma once

#include <optional>
#include <string>

#include "runtime/tokenizer/tokenizer.h"
#include "tools/options/command_options.h"

namespace minimind {

// Adds --tokenizer.
void add_tokenizer(CommandOptions& command, std::string& path);

// Returns the path `given`, otherwise that of the model's tokenizer (of the demo's if `model` is empty). Throws Error,
// naming the places searched, if there is none.
std::string require_tokenizer_path(const std::string& given, const std::string& model);

// Loads that tokenizer. Also throws Error as load_tokenizer() does.
Tokenizer require_tokenizer(const std::string& given, const std::string& model);

// Loads the tokenizer for commands that can run without one. Returns std::nullopt if none was given and the model has
// none, or, with a notice, if a GGUF has one of an unsupported kind.
std::optional<Tokenizer> optional_tokenizer(const std::string& given, const std::string& model);

}  // namespace minimind
