#pragma once

#include <string>

#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/tokenizer_data.h"

namespace minimind {

// Reads a tokenizer.json, the one in the folder `path`, or the tokenizer in a GGUF, which is told by its content.
// Throws Error as read_tokenizer_json() and read_tokenizer_gguf() do, which see.
TokenizerData read_tokenizer(const std::string& path);

// The tokenizer that read_tokenizer() reads.
Tokenizer load_tokenizer(const std::string& path);

}  // namespace minimind
