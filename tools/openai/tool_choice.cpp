#include "tools/openai/tool_choice.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "runtime/chat/message_json.h"
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

// The schema of a function's arguments: of none if it does not say which it has.
ChatJson arguments_schema(const ChatJson& function) {
  const auto given = function.find("parameters");
  ChatJson parameters = given == function.end() || given->is_null() ? ChatJson::object() : *given;
  std::size_t about_properties = parameters.size();
  for (const char* const other : {"type", "$schema", "title", "description", "required"}) {
    about_properties -= parameters.contains(other) ? 1 : 0;
  }
  if (about_properties == 0) parameters["properties"] = ChatJson::object();
  return parameters;
}

// The schema of a call of the function: {"name": ..., "arguments": ...}. The arguments are any unless `checked`.
ChatJson call_schema(const ChatJson& function, const std::string& place, bool checked) {
  ChatJson parameters = checked ? arguments_schema(function) : ChatJson{{"additionalProperties", true}};
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

// The name in {"type": "function", "function": {"name": ...}}, whose type Hugging Face's clients leave out;
// std::nullopt for another form.
std::optional<std::string> named_function(const ChatJson& choice) {
  if (!choice.is_object() || choice.value("type", ChatJson("function")) != "function") return std::nullopt;
  const auto function = choice.find("function");
  if (function == choice.end() || !function->is_object()) return std::nullopt;
  const auto name = function->find("name");
  return name != function->end() && name->is_string() ? std::optional(name->get<std::string>()) : std::nullopt;
}

// What a tool_choice says.
struct Choice {
  bool forced = false;
  bool one_call = false;
  std::vector<std::string> names{};  // of the functions that may be called; empty: all
};

Choice read_choice(const BodyFields& body) {
  const ChatJson* const choice = body.find("tool_choice");
  if (!choice || *choice == "auto" || *choice == "none") return {};
  if (*choice == "required" || *choice == "any") return {.forced = true};  // the latter is Mistral's word
  // Any other word is the name of a function, as text-generation-inference has it.
  if (choice->is_string()) return {.forced = true, .one_call = true, .names = {choice->get<std::string>()}};
  if (const auto named = named_function(*choice)) return {.forced = true, .one_call = true, .names = {*named}};
  const auto fail = [&] {
    body.fail("tool_choice", R"("none", "auto", "required", {"type": "function", "function": {"name": ...}} or )"
                             R"({"type": "allowed_tools", "allowed_tools": {"mode": "auto" or "required", "tools": )"
                             R"([{"type": "function", "function": {"name": ...}}]}})");
  };
  if (!choice->is_object() || choice->value("type", ChatJson()) != "allowed_tools") fail();
  const BodyFields fields(*choice, "tool_choice");
  fields.find("type");
  const ChatJson* const allowed = fields.object("allowed_tools");
  fields.reject_the_rest();
  if (!allowed) fail();
  const BodyFields its(*allowed, "tool_choice.allowed_tools");
  const ChatJson& mode = its.get("mode");
  const ChatJson& tools = its.get("tools");
  its.reject_the_rest();
  if ((mode != "auto" && mode != "required") || !tools.is_array() || tools.empty()) fail();
  Choice result{.forced = mode == "required"};
  for (const ChatJson& tool : tools) {
    const auto name = named_function(tool);
    if (!name) fail();
    result.names.push_back(*name);
  }
  return result;
}

// The functions of the names, or all of them. Throws RequestError if there is none, or none of a name.
std::vector<const ChatJson*> chosen_functions(const ChatJson& tools, const std::vector<std::string>& names) {
  std::vector<const ChatJson*> functions;
  const std::set<std::string> wanted(names.begin(), names.end());
  std::set<std::string> missing = wanted;
  for (const ChatJson& tool : tools) {
    const ChatJson& function = function_of(tool);
    const auto name = function.at("name").get<std::string>();
    missing.erase(name);
    if (wanted.empty() || wanted.contains(name)) functions.push_back(&function);
  }
  if (!missing.empty() || functions.empty()) {
    const std::string required = missing.empty() ? "a function" : quote(*missing.begin());
    throw RequestError(fmt::format("tool_choice requires {}, but tools does not have it", required), "tool_choice");
  }
  return functions;
}

// The grammar of a call of one of the functions; its arguments are checked for strict ones if not `forced`.
std::shared_ptr<const Grammar> call_grammar(const std::vector<const ChatJson*>& functions, bool forced) {
  ChatJson calls = ChatJson::array();
  for (const ChatJson* const function : functions) {
    calls.push_back(call_schema(*function, fmt::format("/anyOf/{}", calls.size()), forced || is_strict(*function)));
  }
  return about("tools", [&] { return schema_grammar(ChatJson{{"anyOf", calls}}, "tools"); });
}

}  // namespace

ToolChoice read_tools(const BodyFields& body) {
  const ChatJson* const tools = body.find("tools");
  const bool one_call = !body.flag("parallel_tool_calls").value_or(true);
  const Choice choice = read_choice(body);
  ToolChoice result{.rule = one_call ? CallRule::single : CallRule::free};
  if (tools) {
    if (!tools->is_array()) body.fail("tools", "a list of functions");
    result.tools = about("tools", [&] { return parse_tools(json_line(*tools), "tools"); });
    if (tools->empty() || body.get("tool_choice") == "none") result.tools.clear();
  }
  const bool limited = choice.forced || !choice.names.empty();
  if (limited && !tools) throw RequestError("tool_choice is about calls, but tools is missing", "tool_choice");
  if (choice.forced) result.rule = one_call || choice.one_call ? CallRule::forced_one : CallRule::forced;
  const auto strict = [](const ChatJson& tool) { return is_strict(function_of(tool)); };
  const bool any_strict = tools && std::ranges::count_if(*tools, strict) > 0;  // checks all
  if (!limited && (!any_strict || result.tools.empty())) return result;
  const std::vector<const ChatJson*> functions = chosen_functions(*tools, choice.names);
  if (choice.forced && (functions.size() == 1 || choice.names.size() == 1)) {
    result.only_function = functions.front()->at("name").get<std::string>();
  }
  result.grammar = call_grammar(functions, choice.forced);
  return result;
}

ToolChoice read_functions(const BodyFields& body) {
  for (const char* const newer : {"tools", "tool_choice", "parallel_tool_calls"}) {
    if (body.find(newer)) body.fail(newer, "none beside functions, its older form");
  }
  ChatJson as_tools{{"tools", body.get("functions")}, {"parallel_tool_calls", false}};
  const ChatJson& choice = body.get("function_call");
  if (choice.is_object() && choice.size() == 1 && choice.value("name", ChatJson()).is_string()) {
    as_tools["tool_choice"] = {{"type", "function"}, {"function", choice}};
  } else if (choice.is_null() || choice == "auto" || choice == "none") {
    as_tools["tool_choice"] = choice;
  } else {
    body.fail("function_call", R"("none", "auto" or {"name": ...})");
  }
  try {
    return read_tools(BodyFields(as_tools));
  } catch (const RequestError& error) {
    const std::string field = error.param() == "tool_choice" ? "function_call" : "functions";
    throw RequestError(fmt::format("{} as {}: {}", field, error.param(), error.what()), field, error.code());
  }
}

}  // namespace minimind
