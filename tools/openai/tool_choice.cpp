#include "tools/openai/tool_choice.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/chat/message_json.h"
#include "runtime/grammar/json_schema.h"
#include "tools/openai/request_error.h"
#include "weights/io/quote.h"

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

// The schema of a call of the function: {"name": ..., "arguments": ...}.
ChatJson call_schema(const ChatJson& function, const std::string& place) {
  ChatJson parameters = ChatJson{{"type", "object"}};
  const auto given = function.find("parameters");
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

// Throws RequestError if no tool has the name.
std::shared_ptr<const Grammar> call_grammar(const ChatJson& tools, const std::optional<std::string>& name) {
  ChatJson calls = ChatJson::array();
  for (const ChatJson& tool : tools) {
    const ChatJson& function = function_of(tool);
    if (name && function.at("name") != *name) continue;
    calls.push_back(call_schema(function, fmt::format("/anyOf/{}", calls.size())));
  }
  if (calls.empty()) {
    const std::string wanted = name ? quote(*name) : "a function";
    throw RequestError(fmt::format("tool_choice requires {}, but tools does not have it", wanted), "tool_choice");
  }
  try {
    JsonSchemaOptions options;
    options.closed = true;
    return std::make_shared<Grammar>(compile_json_schema(ChatJson{{"anyOf", calls}}, "tools", options).grammar);
  } catch (const Error& error) {
    throw RequestError(error.what(), "tools");
  }
}

}  // namespace

ToolChoice read_tools(BodyFields& body) {
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
    try {
      result.tools = parse_tools(json_line(*tools), "tools");
    } catch (const Error& error) {
      throw RequestError(error.what(), "tools");
    }
    if (tools->empty() || (choice && *choice == "none")) result.tools.clear();
  }
  if (!forced) return result;
  if (!tools) throw RequestError("tool_choice requires a call, but tools is missing", "tool_choice");
  result.rule = CallRule::forced;
  result.grammar = call_grammar(*tools, named);
  return result;
}

}  // namespace minimind
