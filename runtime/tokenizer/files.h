#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/tokenizer_data.h"

namespace minimind {

// Returns the path of the file of this name next to a tokenizer.json, or in the folder `path`, if there is one. Throws
// Error if a link leads to it from outside of that folder, except from the blobs of Hugging Face's cache: whoever made
// a model must not choose which other files of this machine are read, and published with the model.
std::optional<std::string> file_beside(const std::string& path, std::string_view name);

// Reads a tokenizer.json, the one in the folder `path`, or the tokenizer in a GGUF, which it detects by content, with
// its chat templates. Next to a tokenizer.json these are in
//   chat_template.jinja    and additional_chat_templates/tool_use.jinja, or else
//   tokenizer_config.json  as chat_template
// Throws Error as read_tokenizer_json(), read_tokenizer_gguf() and file_beside() do, and for a template that is not a
// text.
TokenizerData read_tokenizer(const std::string& path);

// Returns the tokenizer of read_tokenizer().
Tokenizer load_tokenizer(const std::string& path);

}  // namespace minimind
