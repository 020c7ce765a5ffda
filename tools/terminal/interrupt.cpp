#include "tools/terminal/interrupt.h"

#include <unistd.h>

#include <csignal>

namespace minimind {
namespace {

std::atomic<bool> watched{false}, interrupted{false};
std::atomic<int> first_signal{SIGINT};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void note_or_exit(int signal) {
  if (!watched || interrupted) _exit(status_after_signal(signal));
  first_signal = signal;
  interrupted = true;
}

}  // namespace

void handle_signal(int signal, void (*handler)(int)) {
  struct sigaction action {};
  if (signal == SIGHUP && sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

void end_at_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) handle_signal(signal, note_or_exit);
}

const std::atomic<bool>& watch_interrupts() {
  if (!watched.exchange(true)) end_at_signals();
  return interrupted;
}

int interrupted_status() {
  return status_after_signal(first_signal);
}

}  // namespace minimind
