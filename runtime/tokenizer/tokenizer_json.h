#pragma once

#include <string>

#include "runtime/tokenizer/tokenizer_data.h"

namespace minimind {

// Reads a tokenizer.json of Hugging Face tokenizers, or the one in the folder `path`, and what lies beside it:
//   tokenizer_config.json  bos_token, eos_token, pad_token, unk_token (a string or an object with "content"),
//                          chat_template
//   chat_template.jinja    the chat template, in preference to the one in tokenizer_config.json
// Truncation and padding are not applied, as transformers does not unless a call asks for them.
//
// Throws Error, naming file and field, for what is malformed and for what would change the ids and is not done here:
// normalizers, pre-tokenizers and decoders other than ByteLevel, post-processors other than those of
// post_processor_json.h, models other than BPE, dropout, byte_fallback, continuing_subword_prefix, end_of_word_suffix
// and fields unknown to us. Files over 64 MiB and JSON nested over 16 deep are refused: no tokenizer comes near either.
TokenizerData read_tokenizer_json(const std::string& path);

}  // namespace minimind
