#pragma once

#include <string>

#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/tokenizer_data.h"

namespace minimind {

// Reads a tokenizer.json, the one in the folder `path`, or the tokenizer in a GGUF, which it detects by content, with
// its chat templates. Next to a tokenizer.json these are in
//   chat_template.jinja    and additional_chat_templates/tool_use.jinja, or else
//   tokenizer_config.json  as chat_template
// Throws Error as read_tokenizer_json() and read_tokenizer_gguf() do, and for a template that is not a text.
TokenizerData read_tokenizer(const std::string& path);

// Returns the tokenizer of read_tokenizer().
Tokenizer load_tokenizer(const std::string& path);

}  // namespace minimind
