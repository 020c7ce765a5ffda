#include "tools/terminal/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <cstring>
#include <utility>

#include "tools/terminal/note.h"
#include "tools/terminal/progress.h"
#include "weights/io/part_files.h"

namespace minimind {
namespace {

std::atomic<bool> watched{false}, interrupted{false};
std::atomic<int> first_signal{SIGINT};
std::atomic<const char*> message{"minimind: interrupted before the end\n"};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<const char*>::is_always_lock_free);

void print(const char* text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

void note_or_exit(int signal) {
  if (watched && !interrupted) {
    first_signal = signal;
    interrupted = true;
    return;
  }
  if (Progress::is_shown()) print(Progress::clearing);
  print(message);
  remove_unfinished();
  _exit(status_after_signal(signal));
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

InterruptMessage::InterruptMessage(std::string_view text) : outer_(message) {
  set(text);
}

InterruptMessage::~InterruptMessage() {
  message = outer_;
}

void InterruptMessage::set(std::string_view text) {
  std::string line = note_line(text);
  message = line.c_str();
  const std::string before = std::exchange(line_, std::move(line));
  message = line_.c_str();
}

WatchedInterrupts::WatchedInterrupts() {
  watched = true;
}

WatchedInterrupts::~WatchedInterrupts() {
  watched = false;
}

const std::atomic<bool>& WatchedInterrupts::flag() const {
  return interrupted;
}

int interrupted_status() {
  return status_after_signal(first_signal);
}

}  // namespace minimind
