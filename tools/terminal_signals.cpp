#include "tools/terminal_signals.h"

#include <csignal>

namespace minimind {
namespace {

TerminalSignals signals;
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int signal) {
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
      signals.ended = true;
      signals.interrupted = true;
  }
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

TerminalSignals& watch_terminal_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) handle(signal, on_signal);
  return signals;
}

void catch_suspend() {
  handle(SIGTSTP, on_signal);
}

void release_suspend() {
  handle(SIGTSTP, SIG_DFL);
}

}  // namespace minimind
