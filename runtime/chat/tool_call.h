#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/chat/message.h"

namespace minimind {

// Parses a model's call: {"name": "...", "arguments": {...}}. The arguments may be named "parameters", may be the text
// of a JSON object, and may be omitted if empty. The characters of the arguments are kept: numbers, escapes, repeated
// keys and spaces. std::nullopt if a call cannot represent all of the text: another value, another key, a repeated key,
// or both arguments and parameters. Integers of more than 64 bits and numbers beyond a double give std::nullopt too,
// because no chat template can use them.
std::optional<ToolCall> parse_tool_call(std::string_view json);

// Parses the start of a call that starts with the name: the arguments are their characters so far, which may be none.
// std::nullopt if the name is incomplete, or if the text starts no such call.
std::optional<ToolCall> parse_cut_tool_call(std::string_view json);

}  // namespace minimind
