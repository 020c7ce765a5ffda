#pragma once

#include <atomic>

namespace minimind {

// What a program's exit status says of the signal that ended it: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP.
constexpr int status_after_signal(int signal) {
  return 128 + signal;
}

// Calls `handler` for a signal, unless it is a SIGHUP that the program was started to ignore, as nohup does.
void handle_signal(int signal, void (*handler)(int));

// From the call on, Ctrl-C (SIGINT), SIGTERM and SIGHUP, the end of the terminal, end the program with their status.
void end_at_signals();

// From the first call on, they set this flag instead; another one then ends the program.
const std::atomic<bool>& watch_interrupts();

// The exit status of work that the flag ended.
int interrupted_status();

}  // namespace minimind
