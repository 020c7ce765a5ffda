#include "runtime/chat/training_conversation.h"

#include <fmt/core.h>

#include "weights/base/error.h"

namespace minimind {
namespace {

bool is_empty(const ChatJson& value) {
  return value.is_null() || value == "" || (value.is_array() && value.empty());
}

// Returns a list, or the list in a string of JSON.
ChatJson list_in(const ChatJson& value, const std::string& where) {
  ChatJson list = value.is_string() ? parse_chat_json(value.get_ref<const std::string&>(), where) : value;
  if (!list.is_array())
    throw Error(fmt::format("{} is {}, expected a list or the JSON text of one", where, kind_of(list)));
  return list;
}

std::string role_of(const ChatJson& message, std::size_t index, const std::string& where) {
  const auto role = message.find("role");
  if (role == message.end() || role->is_null()) return index % 2 == 0 ? "user" : "assistant";
  if (!role->is_string()) throw Error(fmt::format("{}.role is {}, expected a string", where, kind_of(*role)));
  return role->get<std::string>();
}

}  // namespace

TrainingConversation read_training_conversation(const ChatJson& list, const std::string& where) {
  if (!list.is_array()) throw Error(fmt::format("{} is {}, expected a list of messages", where, kind_of(list)));
  if (list.empty()) throw Error(fmt::format("{} is an empty list, expected messages", where));
  TrainingConversation conversation{.messages = ChatJson::array(), .tools = nullptr};
  for (const ChatJson& item : list) {
    const std::string place = fmt::format("{}[{}]", where, conversation.messages.size());
    if (!item.is_object()) throw Error(fmt::format("{} is {}, expected an object", place, kind_of(item)));
    const std::string role = role_of(item, conversation.messages.size(), place);
    ChatJson message;
    message["role"] = role;
    for (const auto& [name, value] : item.items()) {
      const bool optional = name == "tools" || name == "functions" || name == "tool_calls" ||
                            (name == "reasoning_content" && role != "assistant");
      if (name == "role" || value.is_null() || (optional && is_empty(value))) continue;
      if (role == "system" && (name == "tools" || name == "functions")) {
        conversation.tools = list_in(value, place + "." + name);
      } else {
        message[name] = name == "tool_calls" ? list_in(value, place + ".tool_calls") : value;
      }
    }
    conversation.messages.push_back(std::move(message));
  }
  return conversation;
}

}  // namespace minimind
