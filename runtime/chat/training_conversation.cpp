#include "runtime/chat/training_conversation.h"

#include <fmt/core.h>

#include "weights/base/error.h"

namespace minimind {
namespace {

bool is_empty(const ChatJson& value) {
  return value == "" || (value.is_array() && value.empty());
}

// Returns a list, or the list in a string of JSON.
ChatJson list_in(const ChatJson& value, const std::string& where) {
  ChatJson list = value.is_string() ? parse_chat_json(value.get_ref<const std::string&>(), where) : value;
  if (!list.is_array())
    throw Error(fmt::format("{} is {}, expected a list or the JSON text of one", where, kind_of(list)));
  return list;
}

}  // namespace

TrainingConversation read_training_conversation(const ChatJson& list, const std::string& where) {
  if (!list.is_array()) throw Error(fmt::format("{} is {}, expected a list of messages", where, kind_of(list)));
  if (list.empty()) throw Error(fmt::format("{} is an empty list, expected messages", where));
  TrainingConversation conversation{.messages = ChatJson::array(), .tools = nullptr};
  for (const ChatJson& item : list) {
    const std::string place = fmt::format("{}[{}]", where, conversation.messages.size());
    const char* const turn = conversation.messages.size() % 2 == 0 ? "user" : "assistant";
    const std::string role = ChatFields(item, place).text("role").value_or(turn);
    // Its names differ, as the item's do: message[name] would compare each with all before it.
    ChatJson::object_t message;
    message.reserve(item.size() + 1);
    message.emplace_back("role", role);
    for (const auto& [name, value] : item.items()) {
      const bool optional = name == "tools" || name == "functions" || name == "tool_calls" ||
                            (name == "reasoning_content" && role != "assistant");
      if (name == "role" || value.is_null() || (optional && is_empty(value))) continue;
      if (role == "system" && (name == "tools" || name == "functions")) {
        conversation.tools = list_in(value, place + "." + name);
      } else {
        message.emplace_back(name, name == "tool_calls" ? list_in(value, place + ".tool_calls") : value);
      }
    }
    conversation.messages.push_back(std::move(message));
  }
  return conversation;
}

}  // namespace minimind
