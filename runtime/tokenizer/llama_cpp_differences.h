#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/tokenizer_data.h"

namespace minimind {

// What llama.cpp (src/llama-vocab.cpp, as in llama-cpp-python 0.3.36) does with a tokenizer that is in a GGUF of
// `vocab_size` tokens, and Hugging Face does not: a sentence each, for a person to read. `tokenizer` is that of `data`.
//
// Left out is what it does with every tokenizer: llama_detokenize, unlike the token by token llama_token_to_piece,
// drops spaces before punctuation, and any token called "<|endoftext|>" or the like ends a text.
std::vector<std::string> llama_cpp_differences(const TokenizerData& data, const Tokenizer& tokenizer,
                                               std::size_t vocab_size);

}  // namespace minimind
