#pragma once

#include <string>

#include "runtime/chat/conversation.h"

namespace minimind {

// Reads the format of conversation_json(). Throws Error naming the file.
ConversationState read_conversation(const std::string& path);
void write_conversation(const std::string& path, const ConversationState& state);

}  // namespace minimind
