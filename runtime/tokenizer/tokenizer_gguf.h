#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/tokenizer/tokenizer_data.h"
#include "weights/gguf/reader.h"

namespace minimind {

// Reads the tokenizer of a GGUF, our own (see set_tokenizer()) or one that llama.cpp's converter made; `source` is the
// path of the file. Token ids, decoded text and special tokens are those of the tokenizer.json that it was made from;
// what llama.cpp's converter drops (lstrip and the like) is off.
//
// Throws Error, naming source and key, when there is no tokenizer, for any but byte-level BPE with the GPT-2 split
// (model "gpt2", pre "gpt-2"), for an added start or end token that has no name, and for what is corrupt: wrong types
// and lengths, texts that are not UTF-8, a token given twice, ids out of range, merges of unknown tokens.
TokenizerData read_tokenizer_gguf(const GgufMetadata& metadata, const std::string& source);

// Adds a tokenizer to the metadata of a GGUF, which holds none yet, under llama.cpp's keys (its src/llama-vocab.cpp):
// tokenizer.ggml.* and tokenizer.chat_template. There are as many tokens as the embedding has rows, `vocab_size`: an id
// without a token is "[PAD<id>]" and unused. What llama.cpp's keys cannot say stands under keys of our own, which are
// there only where a tokenizer is not the plain one that MiniMind's are:
//   minimind.tokenizer.add_prefix_space, ignore_merges, fuse_unk, use_regex   bool
//   minimind.tokenizer.unk_token                                              string, of the BPE model
//   minimind.tokenizer.lstrip, rstrip, single_word, normalized                ids of the added tokens that are so
//   minimind.tokenizer.appended                                               ids that the model's vocab does not have
//   minimind.tokenizer.before_text, after_text                                ids put around texts, unless
//   add_bos_token
//                                                                             and add_eos_token say it
//
// Returns what llama.cpp will do otherwise than Hugging Face, a sentence each (llama_cpp_differences.h): none for
// MiniMind's tokenizers. Throws Error, naming data.source, as Tokenizer does, when an id is past the rows of the
// embedding, and for a merge that GGUF's "a b" cannot spell.
[[nodiscard]] std::vector<std::string> set_tokenizer(GgufMetadata& metadata, const TokenizerData& data,
                                                     std::size_t vocab_size);

}  // namespace minimind
