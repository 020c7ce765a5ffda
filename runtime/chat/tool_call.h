#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/chat/message.h"

namespace minimind {

// Reads a call as models write it: {"name": "...", "arguments": {...}}. The arguments may be named "parameters", may be
// the text of a JSON object, and may be omitted for none. The call has the characters of the arguments as they are:
// numbers, escapes, keys that are repeated and spaces stay. std::nullopt if a call could not say all that is written:
// for what is no such object, has another key, a key twice, or both arguments and parameters, and for integers of more
// than 64 bits and numbers beyond a double, which no chat template could be given.
std::optional<ToolCall> parse_tool_call(std::string_view json);

}  // namespace minimind
