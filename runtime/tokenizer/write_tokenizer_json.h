#pragma once

#include <string>

#include "runtime/tokenizer/tokenizer_data.h"

namespace minimind {

// The two files of a Hugging Face folder that make a tokenizer, as text. Their ids, decoded text, special tokens and
// chat template are those of Tokenizer(data). Texts must be UTF-8, as what read_tokenizer_json() and
// read_tokenizer_gguf() return is.

// tokenizer.json, for Tokenizer.from_file of the tokenizers package. read_tokenizer_json() of it gives `data` again,
// but for the order of `vocab`.
std::string tokenizer_json(const TokenizerData& data);

// tokenizer_config.json, for AutoTokenizer of transformers.
std::string tokenizer_config_json(const TokenizerData& data);

}  // namespace minimind
