#pragma once

#include <cstdio>

#include "tools/chat/actions.h"
#include "tools/terminal/signals.h"

namespace minimind {

// Where a conversation with a person is shown: standard error or, when that is no terminal, standard output.
std::FILE* chat_screen();

// Reads messages and commands from the terminal until the person leaves. Ctrl-C stops an answer, clears a line and,
// twice, leaves. What goes wrong is told and the conversation goes on. Returns the exit status.
int chat_on_terminal(ChatActions& actions, const ChatNotices& notices, TerminalSignals& signals);

}  // namespace minimind
