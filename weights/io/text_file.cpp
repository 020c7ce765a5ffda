#include "weights/io/text_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "weights/base/cancel.h"
#include "weights/base/error.h"
#include "weights/io/path.h"

namespace minimind {
namespace {

// A file that is opened without waiting.
class TextFile {
 public:
  TextFile(const std::string& path, bool may_be_pipe) : path_(path) {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor_ < 0) fail(errno);
    struct stat status {};
    const int error = ::fstat(descriptor_, &status) != 0 ? errno : S_ISDIR(status.st_mode) ? EISDIR : 0;
    if (error == 0 && (S_ISREG(status.st_mode) || may_be_pipe)) return;
    ::close(descriptor_);
    if (error != 0) fail(error);
    throw Error(fmt::format("{}: is not a regular file", path));
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  ~TextFile() { ::close(descriptor_); }

  std::string read(std::size_t largest) const {
    std::string text;
    read_pieces([&](std::string_view part) {
      text += part;
      if (text.size() > largest) throw Error(fmt::format("{}: is too long, expected at most {} bytes", path_, largest));
    });
    return text;
  }

  void read_pieces(const std::function<void(std::string_view)>& use) const {
    char buffer[1 << 16];
    bool is_empty = true;
    while (const std::size_t count = read_some(buffer, sizeof buffer)) {
      use({buffer, count});
      is_empty = false;
    }
    if (is_empty && has_no_writer()) {
      throw Error(fmt::format("{}: is a pipe that no process writes to; start the writer first", path_));
    }
  }

 private:
  [[noreturn]] void fail(int error) const {
    throw Error(fmt::format("{}: cannot be read: {}{}", path_, std::strerror(error), advice_on_home(path_)));
  }

  // Returns 0 at the end. Waits for the writers of a pipe and for a terminal, unless the work is cancelled.
  std::size_t read_some(char* buffer, std::size_t size) const {
    for (;;) {
      check_cancelled();
      const ssize_t count = ::read(descriptor_, buffer, size);
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno == EINTR) continue;
      if (errno != EAGAIN) fail(errno);
      pollfd waiting{descriptor_, POLLIN, 0};
      ::poll(&waiting, 1, 20);  // milliseconds, after which the work may be cancelled
    }
  }

  // Whether this is a FIFO that no process has opened for writing since. A pipe that was closed says so (POLLHUP).
  bool has_no_writer() const {
    struct stat status {};
    pollfd state{descriptor_, POLLIN, 0};
    return ::fstat(descriptor_, &status) == 0 && S_ISFIFO(status.st_mode) && ::poll(&state, 1, 0) == 0;
  }

  const std::string& path_;
  int descriptor_;
};

}  // namespace

std::string read_text_file(const std::string& path, std::size_t largest) {
  return TextFile(path, false).read(largest);
}

std::string read_text_or_pipe(const std::string& path, std::size_t largest) {
  return TextFile(path, true).read(largest);
}

void read_pieces_or_pipe(const std::string& path, const std::function<void(std::string_view)>& use) {
  TextFile(path, true).read_pieces(use);
}

}  // namespace minimind
