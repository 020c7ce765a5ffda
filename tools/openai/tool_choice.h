#pragma once

#include <memory>
#include <string>

#include "runtime/grammar/grammar.h"
#include "tools/openai/body_fields.h"

namespace minimind {

// What a tool_choice requires.
enum class CallRule {
  free,    // the model decides
  single,  // the model decides, but at most one call
  forced,  // the answer is one call
};

struct ToolChoice {
  std::string tools{};  // as parse_tools() returns them; empty for none
  CallRule rule = CallRule::free;
  std::shared_ptr<const Grammar> grammar{};  // of a forced call; else null
};

// Reads tools, tool_choice and parallel_tool_calls. With tool_choice "required", or a function by name, the grammar is
// that of a call whose arguments are valid by the function's schema. Throws RequestError.
ToolChoice read_tools(BodyFields& body);

}  // namespace minimind
