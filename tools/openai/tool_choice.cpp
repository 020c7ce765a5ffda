#include "tools/openai/tool_choice.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/chat/message_json.h"
#include "tools/openai/body_fields.h"
#include "tools/openai/request_error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

// Moves the references of a schema that becomes a part of another one: "#/$defs/x" -> "#/PLACE/$defs/x".
void move_references(ChatJson& schema, const std::string& place) {
  for (auto& [key, value] : schema.items()) {
    if (value.is_structured()) {
      move_references(value, place);
    } else if (schema.is_object() && key == "$ref" && value.is_string()) {
      const auto reference = value.get<std::string>();
      if (reference.starts_with("#")) value = "#" + place + reference.substr(1);
    }
  }
}

// Whether the calls of a function are valid by its schema, also if the model decides whether to call it.
bool is_strict(const ChatJson& function) {
  const auto strict = function.find("strict");
  if (strict == function.end() || strict->is_null()) return false;
  if (strict->is_boolean()) return strict->get<bool>();
  throw RequestError(fmt::format("tools: strict of {} is {}, expected true or false",
                                 quote(function.at("name").get<std::string>()), kind_of(*strict)),
                     "tools");
}

// The schema of a call of the function: {"name": ..., "arguments": ...}. The arguments are any unless `checked`.
ChatJson call_schema(const ChatJson& function, const std::string& place, bool checked) {
  ChatJson parameters = ChatJson{{"type", "object"}};
  const auto given = checked ? function.find("parameters") : function.end();
  if (!checked) parameters["additionalProperties"] = true;
  if (given != function.end() && !given->is_null() && !given->empty()) parameters = *given;
  // A call's arguments are an object, even if the schema does not say it.
  if (!parameters.contains("type") && !parameters.contains("$ref")) parameters["type"] = "object";
  move_references(parameters, place + "/properties/arguments");
  return {{"type", "object"},
          {"properties", {{"name", {{"const", function.at("name")}}}, {"arguments", std::move(parameters)}}},
          {"required", {"name", "arguments"}},
          {"additionalProperties", false}};
}

const ChatJson& function_of(const ChatJson& tool) {
  return tool.contains("function") && tool.at("function").is_object() ? tool.at("function") : tool;
}

// The name in {"type": "function", "function": {"name": ...}}; std::nullopt for another form.
std::optional<std::string> named_function(const ChatJson& choice) {
  if (!choice.is_object() || choice.value("type", ChatJson()) != "function") return std::nullopt;
  const auto function = choice.find("function");
  if (function == choice.end() || !function->is_object()) return std::nullopt;
  const auto name = function->find("name");
  return name != function->end() && name->is_string() ? std::optional(name->get<std::string>()) : std::nullopt;
}

// The grammar of a call, of the named function if there is a name; of strict functions if not `forced`. Throws
// RequestError if no tool has the name.
std::shared_ptr<const Grammar> call_grammar(const ChatJson& tools, const std::optional<std::string>& name,
                                            bool forced) {
  ChatJson calls = ChatJson::array();
  for (const ChatJson& tool : tools) {
    const ChatJson& function = function_of(tool);
    if (name && function.at("name") != *name) continue;
    calls.push_back(call_schema(function, fmt::format("/anyOf/{}", calls.size()), forced || is_strict(function)));
  }
  if (calls.empty()) {
    const std::string wanted = name ? quote(*name) : "a function";
    throw RequestError(fmt::format("tool_choice requires {}, but tools does not have it", wanted), "tool_choice");
  }
  return about("tools", [&] { return schema_grammar(ChatJson{{"anyOf", calls}}, "tools"); });
}

}  // namespace

ToolChoice read_tools(const BodyFields& body) {
  const ChatJson* const tools = body.find("tools");
  const ChatJson* const choice = body.find("tool_choice");
  const bool one_call = !body.flag("parallel_tool_calls").value_or(true);
  const std::optional<std::string> named = choice ? named_function(*choice) : std::nullopt;
  const bool forced = named || (choice && *choice == "required");
  if (choice && !forced && *choice != "auto" && *choice != "none") {
    body.fail("tool_choice", R"("none", "auto", "required" or {"type": "function", "function": {"name": ...}})");
  }
  ToolChoice result{.rule = one_call ? CallRule::single : CallRule::free};
  if (tools) {
    if (!tools->is_array()) body.fail("tools", "a list of functions");
    result.tools = about("tools", [&] { return parse_tools(json_line(*tools), "tools"); });
    if (tools->empty() || (choice && *choice == "none")) result.tools.clear();
  }
  if (forced && !tools) throw RequestError("tool_choice requires a call, but tools is missing", "tool_choice");
  if (forced) result.rule = one_call || named ? CallRule::forced_one : CallRule::forced;
  if (named) result.only_function = *named;
  if (forced && tools->size() == 1) result.only_function = function_of(tools->front()).at("name").get<std::string>();
  const auto strict = [](const ChatJson& tool) { return is_strict(function_of(tool)); };
  const bool any_strict = tools && std::ranges::count_if(*tools, strict) > 0;  // checks all
  if (forced || (any_strict && !result.tools.empty())) result.grammar = call_grammar(*tools, named, forced);
  return result;
}

}  // namespace minimind
