#pragma once

#include <string>

#include "runtime/tokenizer/tokenizer_data.h"

namespace minimind {

// Reads a tokenizer.json of Hugging Face tokenizers, or the one in the folder `path`, and what lies next to it:
//   tokenizer_config.json  bos_token, eos_token, pad_token, unk_token (a string or an object with "content"),
//                          chat_template
//   chat_template.jinja    the chat template, in preference to the one in tokenizer_config.json
// Truncation and padding are not applied, as transformers does not unless a call asks for them.
//
// Of post-processors it reads those that transformers 4 and 5 and tokenizers write: null, ByteLevel,
// TemplateProcessing, BertProcessing, RobertaProcessing, and a Sequence of them.
//
// Throws Error, naming file and field, for what is malformed and for what would change the ids and is not done here:
// normalizers, pre-tokenizers and decoders other than ByteLevel, models other than BPE, dropout, byte_fallback,
// continuing_subword_prefix, end_of_word_suffix and fields unknown to us. Files over 64 MiB and JSON nested over 16
// deep are rejected: no tokenizer comes near either.
TokenizerData read_tokenizer_json(const std::string& path);

// The two files of a Hugging Face folder that make a tokenizer, as text. Their ids, decoded text, special tokens and
// chat template are those of Tokenizer(data). Texts must be UTF-8, as what read_tokenizer_json() and
// read_tokenizer_gguf() return is.

// tokenizer.json, for Tokenizer.from_file of the tokenizers package. read_tokenizer_json() of it gives `data` again,
// except the order of `vocab`.
std::string tokenizer_json(const TokenizerData& data);

// tokenizer_config.json, for AutoTokenizer of transformers.
std::string tokenizer_config_json(const TokenizerData& data);

}  // namespace minimind
