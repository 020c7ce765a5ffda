#pragma once

#include "runtime/tokenizer/tokenizer_data.h"
#include "weights/io/json_fields.h"

namespace minimind {

// Reads the post_processor of a tokenizer.json, `file`, into data.before_text and data.after_text: what it puts around
// a single text. Its options for offsets, types and pairs of texts change neither ids nor text.
//
// Read are those that transformers 4 and 5 and tokenizers write: null, ByteLevel, TemplateProcessing, BertProcessing,
// RobertaProcessing, and a Sequence of them. Throws Error, naming file and field, for any other, for a template that
// does not hold the text exactly once, and for a Sequence with a second one that looks at the text when tokens have
// been put around it: tokenizers then takes these for a second text.
void read_post_processor(const JsonFields& file, TokenizerData& data);

}  // namespace minimind
