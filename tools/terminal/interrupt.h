#pragma once

#include <atomic>

namespace minimind {

// Returns the exit status of a program that a signal ended: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP.
constexpr int status_after_signal(int signal) {
  return 128 + signal;
}

// Installs `handler` for a signal, unless the signal is SIGHUP and the program was started with it ignored, as by
// nohup.
void handle_signal(int signal, void (*handler)(int));

// After this call SIGINT (Ctrl-C), SIGTERM and SIGHUP (the terminal closed) end the program with their status.
void end_at_signals();

// After the first call these signals set the returned flag instead; a second signal ends the program.
const std::atomic<bool>& watch_interrupts();

// Returns the exit status for work that the flag ended.
int interrupted_status();

}  // namespace minimind
