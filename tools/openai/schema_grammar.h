#pragma once

#include <memory>
#include <string>

#include "runtime/chat/chat_json.h"
#include "runtime/grammar/grammar.h"

namespace minimind {

// Returns the grammar of JSON with only the properties that the schema names, in their order, as OpenAI's structured
// outputs have it; or, `open`, with others and in any order. Requests with the same schema share it. Throws Error,
// whose message starts with `source`, Cancelled, and LongWork if it takes long and this thread is for brief work.
std::shared_ptr<const Grammar> schema_grammar(const ChatJson& schema, const std::string& source, bool open = false);

// Returns the grammar of GBNF, and throws as schema_grammar() does.
std::shared_ptr<const Grammar> gbnf_grammar(const std::string& text, const std::string& source);

}  // namespace minimind
