#pragma once

#include <string>

#include "runtime/tokenizer/tokenizer_data.h"

namespace minimind {

// Reads a tokenizer.json of Hugging Face tokenizers, or the one in the folder `path`, and bos_token, eos_token,
// pad_token and unk_token (a string or an object with "content") of the tokenizer_config.json next to it, but no chat
// template. Truncation and padding are not applied, as in transformers unless a call requests them.
//
// Supported post-processors are those that transformers 4 and 5 and tokenizers write: null, ByteLevel,
// TemplateProcessing, BertProcessing, RobertaProcessing, and a Sequence of them. A pre-tokenizer and a decoder are
// ByteLevel, or a Sequence of one; a normalizer is null, NFC, NFD, NFKC or NFKD, or a Sequence of one or none.
//
// Throws Error, naming file and field, for malformed input and for unsupported settings that would change the ids:
// other normalizers, pre-tokenizers and decoders other than ByteLevel, models other than BPE, dropout, byte_fallback,
// continuing_subword_prefix, end_of_word_suffix and unknown fields. Files over 64 MiB, JSON nested over 16 deep or
// that parse_json rejects for its memory, repeated keys, and more than 2^20 tokens or merges are rejected, far above
// any tokenizer.
TokenizerData read_tokenizer_json(const std::string& path);

}  // namespace minimind
