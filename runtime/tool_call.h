#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/jinja_value.h"
#include "runtime/message.h"

namespace minimind {

// Reads what models write between <tool_call> and </tool_call>: {"name": "...", "arguments": {...}}, where the
// arguments may be the text of a JSON object too, or be left out for none. Nothing when it is anything else.
std::optional<ToolCall> parse_tool_call(std::string_view json);

// As Python's json.dumps(value, ensure_ascii=False) writes it, on one line or indented by two spaces a level. `value`
// is of what parse_json() makes.
std::string json_line(const jinja::Value& value);
std::string json_indented(const jinja::Value& value);

}  // namespace minimind
