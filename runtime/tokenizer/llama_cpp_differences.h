#pragma once

#include <cstddef>
#include <vector>

#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/tokenizer_data.h"
#include "weights/base/fact.h"

namespace minimind {

// Returns how llama.cpp (src/llama-vocab.cpp, as in llama-cpp-python 0.3.36) deviates from Hugging Face for a tokenizer
// in a GGUF of `vocab_size` tokens: one fact per deviation, for the user. `tokenizer` must be that of `data`.
//
// Deviations for every tokenizer are omitted: llama_detokenize drops spaces before punctuation, unlike
// llama_token_to_piece, and any token called "<|endoftext|>" or similar ends a text.
std::vector<Fact> llama_cpp_differences(const TokenizerData& data, const Tokenizer& tokenizer, std::size_t vocab_size);

}  // namespace minimind
