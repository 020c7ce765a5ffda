#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/grammar/grammar.h"
#include "tools/openai/body_fields.h"

namespace minimind {

// What a text must be.
struct TextConstraint {
  std::shared_ptr<const Grammar> grammar{};  // null: anything
  std::string field{};                       // that has it; empty for none
};

// Read the fields of a request that say what its text must be; only one of them may be there, and none but
// response_format, which then changes nothing, if `given` has one already: that of a forced call. Throw RequestError.
//
// response_format, if `chat`; grammar; those of read_sglang_constraint(); and those of vLLM: guided_json, guided_regex,
// guided_choice, guided_grammar and structured_outputs with json, json_object, regex, choice or grammar. A JSON Schema
// is an object or its text, a grammar is GBNF, and the whole text must match a regular expression.
TextConstraint read_constraint(const BodyFields& body, bool chat, TextConstraint given);
// The names of those, but for response_format.
std::vector<std::string> constraint_fields();
// Those of SGLang's sampling parameters: json_schema, regex and ebnf.
TextConstraint read_sglang_constraint(const BodyFields& parameters);
// The grammar of a field that is as response_format; null: it is not there, or any text is allowed.
std::shared_ptr<const Grammar> read_format(const BodyFields& body, const std::string& name);

}  // namespace minimind
