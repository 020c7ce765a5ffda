#include "tools/terminal/signals.h"

#include <csignal>

#include "tools/terminal/interrupt.h"

namespace minimind {
namespace {

TerminalSignals signals;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void note_signal(int signal) {
  switch (signal) {
    case SIGINT:
      signals.interrupted = true;
      break;
    case SIGWINCH:
      signals.resized = true;
      break;
    case SIGTSTP:
      signals.suspended = true;
      break;
    default:
      signals.ended = signal;
      signals.interrupted = true;
      wake_to_end(signal);
  }
}

}  // namespace

TerminalSignals& watch_terminal_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) handle_signal(signal, note_signal);
  return signals;
}

void catch_suspend() {
  handle_signal(SIGTSTP, note_signal);
}

void release_suspend() {
  handle_signal(SIGTSTP, SIG_DFL);
}

}  // namespace minimind
