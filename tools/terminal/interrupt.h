#pragma once

#include <atomic>
#include <string>
#include <string_view>

namespace minimind {

// Returns the exit status of a program that a signal ended: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP.
constexpr int status_after_signal(int signal) {
  return 128 + signal;
}

// Installs `handler` for a signal, unless the signal is SIGHUP and the program was started with it ignored, as by
// nohup.
void handle_signal(int signal, void (*handler)(int));

// After this call SIGINT (Ctrl-C), SIGTERM and SIGHUP (the terminal closed) end the program with their status. The
// handler does that itself, so it takes no time, whatever is running: it removes unfinished files
// (weights/io/part_files.h) and prints a line on stderr.
void end_at_signals();

// That line while the object lives, such as "interrupted; a.gguf was not written". Objects must be made by the thread
// that receives signals and destroyed in the opposite order.
class InterruptMessage {
 public:
  explicit InterruptMessage(std::string_view text);
  InterruptMessage(const InterruptMessage&) = delete;
  InterruptMessage& operator=(const InterruptMessage&) = delete;
  ~InterruptMessage();

  void set(std::string_view text);

 private:
  const char* outer_;
  std::string line_;
};

// Work that has a result even if it is interrupted. While the object lives these signals set a flag instead, which the
// work must look at every few milliseconds. A second signal ends the program as above.
class WatchedInterrupts {
 public:
  WatchedInterrupts();
  WatchedInterrupts(const WatchedInterrupts&) = delete;
  WatchedInterrupts& operator=(const WatchedInterrupts&) = delete;
  ~WatchedInterrupts();

  const std::atomic<bool>& flag() const;
};

// Notes that `signal` ends the program soon, and lets no system call of this thread wait for long any more: each is
// interrupted every 20 ms, so that a signal that comes just before a call is not lost. For handlers of signals.
void wake_to_end(int signal) noexcept;

// Whether a signal ends the program soon.
bool must_end() noexcept;

// Returns the exit status for work that a signal ended.
int interrupted_status();

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
