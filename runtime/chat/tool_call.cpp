#include "runtime/chat/tool_call.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "runtime/chat/chat_json.h"
#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

// Returns the position after the string or other value that starts at `at` in valid JSON: the comma or bracket that
// ends it.
std::size_t end_of_value(std::string_view json, std::size_t at) {
  std::size_t depth = 0;
  bool in_string = false;
  for (; at < json.size(); ++at) {
    const char c = json[at];
    if (in_string) {
      if (c == '\\') ++at;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (depth == 0 && (c == ',' || c == ':' || c == '}')) {
      break;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return at;
}

// Returns the content of a JSON string; std::nullopt if the text is another value.
std::optional<std::string> text_of(std::string_view json) {
  const ChatJson value = parse_chat_json(json, "a string", LargeIntegers::rounded);
  return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
}

// Returns the keys of a valid JSON object, and the characters of their values.
std::vector<std::pair<std::string, std::string_view>> members_of(std::string_view json) {
  std::vector<std::pair<std::string, std::string_view>> members;
  std::size_t at = json.find('{') + 1;
  if (trimmed(json.substr(at)) == "}") return members;
  while (json[at - 1] != '}') {
    const std::size_t colon = end_of_value(json, at), end = end_of_value(json, colon + 1);
    members.emplace_back(text_of(trimmed(json.substr(at, colon - at))).value(),
                         trimmed(json.substr(colon + 1, end - colon - 1)));
    at = end + 1;
  }
  return members;
}

// The start of a JSON object, which may end anywhere.
class ObjectStart {
 public:
  explicit ObjectStart(std::string_view text) : rest_(text) {}

  std::string_view rest() const { return trimmed(rest_).empty() ? std::string_view() : rest_; }

  bool take(char c) {
    skip_spaces();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // std::nullopt if the string is incomplete, which stays the rest.
  std::optional<std::string> take_string() {
    skip_spaces();
    if (!rest_.starts_with('"')) return std::nullopt;
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) return std::nullopt;
    auto text = text_of(rest_.substr(0, end + 1));
    rest_.remove_prefix(end + 1);
    return text;
  }
  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(ascii_spaces), rest_.size())); }

 private:
  std::string_view rest_;
};

// Reads the arguments after the name; false if there is something else. They stay empty if the text ends before them.
bool read_cut_arguments(ObjectStart& object, std::string& arguments) {
  if (!object.take(',')) return object.rest().empty();
  const auto key = object.take_string();
  if (!key) return object.rest().empty() || object.rest().starts_with('"');
  if (*key != "arguments" && *key != "parameters") return false;
  if (!object.take(':')) return object.rest().empty();
  object.skip_spaces();
  const std::string_view rest = object.rest();
  if (rest.empty()) return true;
  arguments = rest.substr(0, std::min(end_of_value(rest, 0), rest.size()));
  return rest.front() == '{';
}

}  // namespace

std::optional<ToolCall> parse_tool_call(std::string_view json) {
  try {
    if (!parse_chat_json(json, "the call", LargeIntegers::rounded).is_object()) return std::nullopt;
    ToolCall call;
    for (const auto& [key, text] : members_of(json)) {
      if (key == "name" && call.name.empty()) {
        call.name = text_of(text).value_or("");
        if (call.name.empty()) return std::nullopt;
      } else if ((key == "arguments" || key == "parameters") && call.arguments.empty()) {
        call.arguments = text_of(text).value_or(std::string(text));
        if (!parse_chat_json(call.arguments, "the arguments", LargeIntegers::rounded).is_object()) return std::nullopt;
      } else {
        return std::nullopt;
      }
    }
    if (call.name.empty()) return std::nullopt;
    if (call.arguments.empty()) call.arguments = "{}";
    return call;
  } catch (const Error&) {
    return std::nullopt;  // models may write invalid JSON; the user sees it as text
  }
}

std::optional<ToolCall> parse_cut_tool_call(std::string_view json) {
  try {
    ObjectStart object(json);
    if (!object.take('{') || object.take_string() != "name" || !object.take(':')) return std::nullopt;
    ToolCall call;
    call.name = object.take_string().value_or("");
    if (call.name.empty() || !read_cut_arguments(object, call.arguments)) return std::nullopt;
    return call;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace minimind
