#pragma once

#include <atomic>

namespace minimind {

// Flags that signals of a terminal set in an interactive program. The code that handles a flag must clear it.
struct TerminalSignals {
  std::atomic<bool> interrupted;  // Ctrl-C; also set with `ended`, so that running work stops
  std::atomic<int> ended;         // the signal: SIGTERM, or SIGHUP if the terminal closed; 0 before
  std::atomic<bool> resized;
  std::atomic<bool> suspended;  // Ctrl-Z, between catch_suspend() and release_suspend()
};

// After the first call signals only set these flags. They interrupt no system calls except read() and poll().
TerminalSignals& watch_terminal_signals();

// Between these calls Ctrl-Z sets the flag; otherwise it suspends the program as usual.
void catch_suspend();
void release_suspend();

}  // namespace minimind
