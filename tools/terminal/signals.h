#pragma once

#include <atomic>

namespace minimind {

// What a terminal sends a program that converses. Whoever reacts to a flag clears it.
struct TerminalSignals {
  std::atomic<bool> interrupted;  // Ctrl-C; or the end, so that work under way stops
  std::atomic<int> ended;         // the signal: SIGTERM, or SIGHUP when the terminal went away; 0 before
  std::atomic<bool> resized;
  std::atomic<bool> suspended;  // Ctrl-Z, where it is caught
};

// From the first call on, signals set these flags, end no system call by themselves but read() and poll(), and do
// nothing else.
TerminalSignals& watch_terminal_signals();

// Ctrl-Z sets the flag between the two, and suspends the program as usual otherwise.
void catch_suspend();
void release_suspend();

}  // namespace minimind
