#include "runtime/chat/training_conversation.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "runtime/jinja/show.h"
#include "weights/io/error.h"

namespace minimind {
namespace {

using jinja::Dict;
using jinja::Value;

jinja::Budget unlimited() {
  return jinja::Budget({.steps = SIZE_MAX, .depth = SIZE_MAX, .bytes = SIZE_MAX, .output = SIZE_MAX});
}

bool is_empty(const Value& value) {
  return value.is_none() || (value.text() && value.text()->bytes.empty()) ||
         (value.list() && value.list()->items.empty());
}

// A list, or the one that a text holds as JSON.
Value list_in(const Value& value, const std::string& where) {
  const Value list = value.text() ? jinja::parse_json(value.text()->bytes, where) : value;
  if (!list.list())
    throw Error(fmt::format("{} is {}, expected a list or the JSON text of one", where, list.kind_name()));
  return list;
}

std::string role_of(const Dict& message, std::size_t index, const std::string& where) {
  const Value* const role = message.find("role");
  if (!role || role->is_none()) return index % 2 == 0 ? "user" : "assistant";
  if (!role->text()) throw Error(fmt::format("{}.role is {}, expected a string", where, role->kind_name()));
  return role->text()->bytes;
}

}  // namespace

TrainingConversation read_training_conversation(const Value& list, const std::string& where) {
  if (!list.list()) throw Error(fmt::format("{} is {}, expected a list of messages", where, list.kind_name()));
  if (list.list()->items.empty()) throw Error(fmt::format("{} is an empty list, expected messages", where));
  TrainingConversation conversation;
  std::vector<Value> messages;
  for (const Value& item : list.list()->items) {
    const std::string place = fmt::format("{}[{}]", where, messages.size());
    if (!item.dict()) throw Error(fmt::format("{} is {}, expected an object", place, item.kind_name()));
    const std::string role = role_of(*item.dict(), messages.size(), place);
    Dict message;
    message.set("role", role);
    for (const auto& [key, value] : item.dict()->entries()) {
      const std::string& name = key.text()->bytes;
      const bool optional = name == "tools" || name == "functions" || name == "tool_calls" ||
                            (name == "reasoning_content" && role != "assistant");
      if (name == "role" || value.is_none() || (optional && is_empty(value))) continue;
      if (role == "system" && (name == "tools" || name == "functions")) {
        conversation.tools = list_in(value, place + "." + name);
      } else {
        message.set(key, name == "tool_calls" ? list_in(value, place + ".tool_calls") : value);
      }
    }
    jinja::Budget budget = unlimited();
    messages.push_back(jinja::make_dict(std::move(message), budget));
  }
  jinja::Budget budget = unlimited();
  conversation.messages = jinja::make_list(std::move(messages), budget);
  return conversation;
}

}  // namespace minimind
