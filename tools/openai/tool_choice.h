#pragma once

#include <memory>
#include <string>

#include "runtime/grammar/grammar.h"
#include "tools/openai/body_fields.h"

namespace minimind {

// What a tool_choice requires.
enum class CallRule {
  free,        // the model decides
  single,      // the model decides, but at most one call
  forced,      // the answer is one or more calls
  forced_one,  // the answer is one call
};

constexpr bool is_forced(CallRule rule) {
  return rule == CallRule::forced || rule == CallRule::forced_one;
}

struct ToolChoice {
  std::string tools{};  // as parse_tools() returns them; empty for none
  CallRule rule = CallRule::free;
  std::string only_function{};  // that forced calls are of; empty if there are several
  std::shared_ptr<const Grammar>
      grammar{};  // of each call; null: none, if calls are of any function and none is strict
};

// Reads tools, tool_choice and parallel_tool_calls. With tool_choice "required", or a function by name, every call is
// valid by the function's schema, else that of a function with `strict`. A function by name is called once. Of
// allowed_tools only the functions that it names are called. A function without properties is called with none. Throws
// RequestError.
ToolChoice read_tools(const BodyFields& body);

// Reads functions, which must be there, and function_call: what OpenAI's API had before tools. At most one is called.
ToolChoice read_functions(const BodyFields& body);

}  // namespace minimind
