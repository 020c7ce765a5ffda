#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/marked_text.h"

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

// A function call in an answer. It is never executed.
struct ToolCall {
  std::string id{};    // "call_1", "call_2", ... within a conversation, or from a file; may be empty
  std::string name{};  // of the function
  // A JSON object as text. In a history also what a model wrote of one that was cut off or is a mistake.
  std::string arguments{};

  bool operator==(const ToolCall&) const = default;
};

// One message of a conversation. All strings are UTF-8.
struct Message {
  Role role = Role::user;
  std::string content{};                   // without the thinking and the calls next to it
  std::optional<std::string> reasoning{};  // of an assistant: its thinking, if any
  std::vector<ToolCall> tool_calls{};      // of an assistant
  std::string tool_call_id{};              // of a tool: the call that this is the result of; may be empty
  std::string name{};                      // of a tool: the function that was called; may be empty
  // Of an assistant: the model's text with thinking, tags and calls, which the template gets as the content instead of
  // the fields above; see Conversation for when. Not saved as JSON.
  std::optional<std::string> verbatim{};
  TextMarks verbatim_plain{};  // the bytes of it that are of ordinary tokens, not of tags

  bool operator==(const Message&) const = default;
};

// Returns the number of calls in all messages.
inline std::size_t tool_call_count(const std::vector<Message>& messages) {
  std::size_t calls = 0;
  for (const Message& message : messages) calls += message.tool_calls.size();
  return calls;
}

}  // namespace minimind
