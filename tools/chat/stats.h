#pragma once

#include <string>

#include "runtime/chat/conversation.h"

namespace minimind {

// Returns the lines of /stats.
std::string chat_stats(const Conversation& conversation);

}  // namespace minimind
