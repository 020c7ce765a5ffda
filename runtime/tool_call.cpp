#include "runtime/tool_call.h"

#include <cstdint>

#include "runtime/jinja_json.h"
#include "runtime/jinja_show.h"
#include "weights/error.h"

namespace minimind {
namespace {

// What is written was read before, under parse_json()'s limits.
std::string written(const jinja::Value& value, const jinja::JsonStyle& style) {
  jinja::Budget budget({.steps = SIZE_MAX, .depth = SIZE_MAX, .bytes = SIZE_MAX, .output = SIZE_MAX});
  return jinja::to_json(value, style, budget);
}

}  // namespace

std::string json_line(const jinja::Value& value) {
  return written(value, {});
}

std::string json_indented(const jinja::Value& value) {
  jinja::JsonStyle style;
  style.indent = "  ";
  style.item_separator = ",";
  return written(value, style);
}

std::optional<ToolCall> parse_tool_call(std::string_view json) {
  try {
    const jinja::Value value = jinja::parse_json(json, "the call");
    const jinja::Dict* const object = value.dict();
    const jinja::Value* const name = object ? object->find("name") : nullptr;
    if (!name || !name->text() || name->text()->bytes.empty()) return std::nullopt;
    const jinja::Value* const arguments = object->find("arguments");
    ToolCall call{.id = "", .name = name->text()->bytes, .arguments = "{}"};
    if (!arguments) return call;
    if (arguments->dict()) {
      call.arguments = json_line(*arguments);
    } else if (!arguments->text() || !jinja::parse_json(arguments->text()->bytes, "the arguments").dict()) {
      return std::nullopt;
    } else {
      call.arguments = arguments->text()->bytes;
    }
    return call;
  } catch (const Error&) {
    return std::nullopt;  // models write what is no JSON; it is for people to see
  }
}

}  // namespace minimind
