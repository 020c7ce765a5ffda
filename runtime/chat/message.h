#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace minimind {

enum class Role { system, user, assistant, tool };

constexpr std::string_view name_of(Role role) {
  switch (role) {
    case Role::system:
      return "system";
    case Role::user:
      return "user";
    case Role::assistant:
      return "assistant";
    case Role::tool:
      return "tool";
  }
  return "unknown";
}

// A function that an answer calls. Nothing here ever calls it.
struct ToolCall {
  std::string id{};         // "call_1", "call_2", ... within a conversation, or what a file gave it; may be empty
  std::string name{};       // of the function
  std::string arguments{};  // a JSON object, as text

  bool operator==(const ToolCall&) const = default;
};

// One message of a conversation. All texts are UTF-8.
struct Message {
  Role role = Role::user;
  std::string content{};                   // without the thinking and the calls next to it
  std::optional<std::string> reasoning{};  // of an assistant: its thinking, where it had any
  std::vector<ToolCall> tool_calls{};      // of an assistant
  std::string tool_call_id{};              // of a tool: the call that this is the result of; may be empty
  std::string name{};                      // of a tool: the function that was called; may be empty
  // Of an assistant, text as the model wrote it with thinking, tags and calls in it, to be given to the template as
  // the content instead of the fields above; see Conversation for when. Not part of what is saved as JSON.
  std::optional<std::string> verbatim{};

  bool operator==(const Message&) const = default;
};

}  // namespace minimind
