#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/chat/chat_json.h"

namespace minimind {

// A conversation of MiniMind's training data, as its chat template is given it.
struct TrainingConversation {
  ChatJson messages;  // a list of objects
  ChatJson tools;     // a list of function schemas, or null
};

// Reads the list that MiniMind's data calls "conversations", "chosen" or "rejected": messages with role, content,
// reasoning_content and tool_calls, a list or, as in MiniMind's data, the JSON text of one. The tools are what a system
// message has as "tools" or "functions", a list or the JSON text of one. A message without a role is the user's or the
// assistant's in turn, as in the data of v1 and v2. Fields that are null, or empty without being of use, are
// omitted. Nothing that MiniMind's dataset draws at random is done. Throws Error, which starts with `where`.
TrainingConversation read_training_conversation(const ChatJson& list, const std::string& where);

}  // namespace minimind
