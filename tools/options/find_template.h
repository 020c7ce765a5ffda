#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "runtime/chat/chat_template.h"
#include "runtime/tokenizer/tokenizer_data.h"

namespace minimind {

// Adds --template.
void add_template(CLI::App& command, std::string& path);

// Adds --plain-content.
void add_plain_content(CLI::App& command, bool& plain_content);

struct FoundTemplate {
  ChatTemplate chat_template;
  std::string source;  // its origin, for messages
};

// Returns the chat template in the file `given`, otherwise the tokenizer's; std::nullopt if there is neither. Throws
// Error as ChatTemplate does, and if the file cannot be read.
std::optional<FoundTemplate> find_template(const std::string& given, const TokenizerData* tokenizer);

// The template of find_template(), else that of the model's family. Says which on standard error unless `quiet`.
ChatTemplate template_or_family(const std::string& given, const TokenizerData& tokenizer, Family family, bool quiet);

}  // namespace minimind
