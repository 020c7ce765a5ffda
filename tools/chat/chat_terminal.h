#pragma once

#include <cstdio>
#include <functional>

#include "tools/chat/actions.h"
#include "tools/terminal/interrupt.h"

namespace minimind {

// Returns the output of an interactive conversation: stderr or, if that is not a terminal, stdout.
std::FILE* chat_screen();

// Reads messages and commands from the terminal until the user exits. Ctrl-C stops an answer or clears a line; twice,
// it exits. After an error message the conversation continues. Calls `keep` after each entry. Returns the exit status.
int chat_on_terminal(ChatActions& actions, const ChatNotices& notices, TerminalSignals& signals,
                     const std::function<void()>& keep);

}  // namespace minimind
