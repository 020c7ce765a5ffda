#include "tools/terminal/note.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <mutex>

namespace minimind {
namespace {

std::atomic<bool> waits{true};
std::mutex mutex;      // of all threads, because a pipe that one of them finds writable another may fill
std::size_t lost = 0;  // lines

// A pipe or terminal that can be written to takes so many bytes at once.
constexpr std::size_t at_once = PIPE_BUF;

void offer(std::string line) {
  const std::lock_guard lock(mutex);
  pollfd waiting{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&waiting, 1, 0) != 1 || (waiting.revents & POLLOUT) == 0) {
    ++lost;
    return;
  }
  if (lost > 0) line = fmt::format("{} lines of this log are lost\n", std::exchange(lost, 0)) + line;
  constexpr std::string_view end = "...\n";
  if (line.size() > at_once) line.replace(at_once - end.size(), std::string::npos, end);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void write_error_line(std::string line) {
  if (!waits) return offer(std::move(line));
  std::fputs(line.c_str(), stderr);
}

void never_wait_for_standard_error() {
  waits = false;
}

}  // namespace minimind
