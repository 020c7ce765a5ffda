#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/tokenizer/tokenizer_data.h"
#include "weights/base/fact.h"
#include "weights/gguf/reader.h"

namespace minimind {

// Reads the tokenizer of a GGUF of our own (see set_tokenizer()) or of llama.cpp's converter; `source` is the path of
// the file. Token ids, decoded text and special tokens are those of the original tokenizer.json. Properties that
// llama.cpp's converter drops (lstrip and the like) are off.
//
// Throws Error, naming source and key, if there is no tokenizer, for any model except byte-level BPE with the GPT-2
// split (model "gpt2", pre "gpt-2"), and for an added start or end token without a name. Corrupt data throws Error too:
// wrong types and lengths, strings that are not UTF-8, repeated tokens, ids out of range, merges of unknown tokens.
TokenizerData read_tokenizer_gguf(const GgufMetadata& metadata, const std::string& source);

// Adds a tokenizer to the metadata of a GGUF, which must not have one yet, under llama.cpp's keys (its
// src/llama-vocab.cpp): tokenizer.ggml.* and tokenizer.chat_template. The number of tokens is `vocab_size`, the rows of
// the embedding: an id without a token is "[PAD<id>]" and unused. Properties that llama.cpp's keys cannot express have
// our own keys, which are written only for tokenizers that differ from MiniMind's:
//   minimind.tokenizer.add_prefix_space, ignore_merges, fuse_unk, use_regex   bool
//   minimind.tokenizer.unk_token                                              string, of the BPE model
//   minimind.tokenizer.normal_form                                            string, such as NFC
//   minimind.tokenizer.lstrip, rstrip, single_word, normalized                ids of the added tokens that are so
//   minimind.tokenizer.appended                                               ids that the model's vocab does not have
//   minimind.tokenizer.before_text, after_text                                ids put around texts, unless
//                                                                             add_bos_token and add_eos_token suffice
//
// Returns a fact for the end and the start token that llama.cpp will take, if the tokenizer's files name none: nothing
// for MiniMind's tokenizers. Throws Error, naming data.source, as Tokenizer does, if an id is outside the rows of the
// embedding, and for a merge that GGUF's "a b" cannot spell.
[[nodiscard]] std::vector<Fact> set_tokenizer(GgufMetadata& metadata, const TokenizerData& data,
                                              std::size_t vocab_size);

}  // namespace minimind
