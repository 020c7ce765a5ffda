#pragma once

#include <string>

#include "runtime/tokenizer/tokenizer_data.h"
#include "weights/gguf/reader.h"

namespace minimind {

// Reads the tokenizer of a GGUF, ours (write_tokenizer_gguf.h) or one that llama.cpp's converter made; `source` is the
// path of the file. Token ids, decoded text and special tokens are those of the tokenizer.json that it was made from;
// what llama.cpp's converter drops (lstrip and the like) is off.
//
// Throws Error, naming source and key, when there is no tokenizer, for any but byte-level BPE with the GPT-2 split
// (model "gpt2", pre "gpt-2"), for an added start or end token that has no name, and for what is damaged: wrong types
// and lengths, texts that are not UTF-8, a token given twice, ids out of range, merges of unknown tokens.
TokenizerData read_tokenizer_gguf(const GgufMetadata& metadata, const std::string& source);

}  // namespace minimind
