#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/tokenizer/tokenizer_data.h"
#include "weights/gguf/reader.h"

namespace minimind {

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
