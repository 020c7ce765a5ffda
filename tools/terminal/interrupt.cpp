#include "tools/terminal/interrupt.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include "tools/terminal/note.h"
#include "tools/terminal/progress.h"
#include "weights/io/part_files.h"

namespace minimind {
namespace {

std::atomic<bool> watched{false}, interrupted{false};
std::atomic<int> first_signal{0};  // of those that end the program soon
std::atomic<const char*> message{"minimind: interrupted before the end\n"};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<const char*>::is_always_lock_free);

// Does not wait for a pipe that nobody reads.
void print(const char* text) {
  pollfd waiting{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&waiting, 1, 0) != 1) return;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

// GNU's C library has it from 2.34, musl from 1.2.2. fork() itself may wait for a lock that the interrupted thread
// holds.
#if defined(__linux__) && (!defined(__GLIBC__) || __GLIBC__ * 100 + __GLIBC_MINOR__ >= 234)
pid_t fork_in_handler() {
  return ::_Fork();
}
#else
pid_t fork_in_handler() {
  return -1;
}
#endif

// Whether it is a file without a name, of at least so many bytes on the disk. A path's last descriptor frees them.
bool is_removed_file(int descriptor, long long least_bytes) {
  constexpr int block_bytes = 512;
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 0 &&
         static_cast<long long>(status.st_blocks) * block_bytes >= least_bytes;
}

// Freeing the blocks of a removed file takes seconds per GB where a disk is told of them, and would delay the end of
// this process. A child keeps such files open until then, and nothing else: neither pipes nor locks. It stays if there
// is no such file, or no child.
void free_removed_files_later() {
  constexpr int descriptors = 1024;
  constexpr long long least_bytes = 8 << 20;
  bool any = false;
  for (int i = 0; i < descriptors && !any; ++i) any = is_removed_file(i, least_bytes);
  if (!any) return;
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  const pid_t parent = ::getpid();
  if (fork_in_handler() != 0) return;
  for (int i = 0; i < descriptors; ++i) {
    if (!is_removed_file(i, 0)) ::close(i);
  }
  const timespec millisecond{0, 1'000'000};
  while (::getppid() == parent) ::nanosleep(&millisecond, nullptr);
  _exit(0);
}

void note_or_exit(int signal) {
  if (watched && !interrupted) {
    interrupted = true;
    return wake_to_end(signal);
  }
  if (Progress::is_shown()) print(Progress::clearing);
  print(message);
  remove_unfinished();
  free_removed_files_later();
  _exit(status_after_signal(signal));
}

TerminalSignals signals;

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

void wake_to_end(int signal) noexcept {
  const int error = errno;
  first_signal = signal;
  struct sigaction action {};
  action.sa_handler = [](int) {};
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, nullptr);
  const itimerval every{{0, 20'000}, {0, 20'000}};  // microseconds
  setitimer(ITIMER_REAL, &every, nullptr);
  errno = error;
}

bool must_end() noexcept {
  return first_signal != 0;
}

int interrupted_status() {
  return status_after_signal(must_end() ? first_signal.load() : SIGINT);
}

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
