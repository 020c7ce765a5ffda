#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/tokenizer/tokenizer_data.h"

namespace minimind {

// The two tokenizer files of a Hugging Face folder, as text. Their ids, decoded text, special tokens and chat template
// are those of Tokenizer(data). Strings must be UTF-8, as those of read_tokenizer_json() and read_tokenizer_gguf() are.

// Returns tokenizer.json, for Tokenizer.from_file of the tokenizers package. read_tokenizer_json() of it gives `data`
// again, except for the order of `vocab`.
std::string tokenizer_json(const TokenizerData& data);

// Returns tokenizer_config.json, for AutoTokenizer of transformers.
std::string tokenizer_config_json(const TokenizerData& data);

// Returns a token's spelling in the file; std::nullopt if the id has no token.
std::optional<std::string> token_text(const TokenizerData& data, std::int32_t id);

// Returns true if the post-processor's ids are only the token `name`, such as bos_token.
bool is_just(const TokenizerData& data, const std::vector<std::int32_t>& ids, const std::optional<std::string>& name);

}  // namespace minimind
