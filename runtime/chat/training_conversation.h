#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/chat/chat_json.h"

namespace minimind {

// A conversation of MiniMind's training data, as the input of its chat template.
struct TrainingConversation {
  ChatJson messages;  // a list of objects
  ChatJson tools;     // a list of function schemas, or null
};

// Reads MiniMind's list "conversations", "chosen" or "rejected": messages with role, content, reasoning_content and
// tool_calls, a list or its JSON text. The tools are a system message's "tools" or "functions", a list or its JSON
// text. Messages without a role are the user's and the assistant's in turn, as in the data of v1 and v2. Fields that
// are null, or empty and unused, are omitted. The random augmentations of MiniMind's dataset are not applied. Throws
// Error, which starts with `where`.
TrainingConversation read_training_conversation(const ChatJson& list, const std::string& where);

}  // namespace minimind
