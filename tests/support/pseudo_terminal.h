#pragma once

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/support/cases.h"
#include "tests/support/end_child.h"

namespace minimind {

// A program on a terminal of 80 by 24 with escape sequences, where a test types and reads.
class PseudoTerminal {
 public:
  // `program` runs in a child process and returns its exit status.
  explicit PseudoTerminal(const std::function<int()>& program) {
    winsize size{24, 80, 0, 0};
    child_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (child_ < 0) throw std::runtime_error("no pseudo-terminal");
    if (child_ == 0) {
      ::signal(SIGHUP, SIG_DFL);  // nohup ignores it
      setenv("TERM", "xterm", 1);
      end_child(program());
    }
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;
  ~PseudoTerminal() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    close(terminal_);
  }

  void type(std::string_view text) {
    if (write(terminal_, text.data(), text.size()) != std::ssize(text)) throw std::runtime_error("cannot type");
  }

  void resize(std::size_t columns, std::size_t rows) {
    const winsize size{static_cast<unsigned short>(rows), static_cast<unsigned short>(columns), 0, 0};
    if (ioctl(terminal_, TIOCSWINSZ, &size) != 0) throw std::runtime_error("cannot resize");
  }

  // Reads output until it contains `text`, after the text of the last call. Returns false after ten seconds of a slow
  // machine, or if the program has ended.
  bool wait_for(std::string_view text) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10) * slowness;
    while (true) {
      const std::size_t at = shown_.find(text, seen_);
      if (at != std::string::npos) {
        seen_ = at + text.size();
        return true;
      }
      if (std::chrono::steady_clock::now() > deadline || !read_more()) return false;
    }
  }

  // Reads the available output. Returns false if the program has ended.
  bool read_available() {
    pollfd input{terminal_, POLLIN, 0};
    while (poll(&input, 1, 0) > 0) {
      if (!read_more()) return false;
    }
    return true;
  }

  // Everything shown so far.
  const std::string& shown() const { return shown_; }

  void signal(int number) { kill(child_, number); }

  // The files of the program cannot grow over `bytes`, as if the disk were full; RLIM_INFINITY ends that.
  void limit_files(rlim_t bytes) {
    const rlimit limit{bytes, RLIM_INFINITY};
    if (prlimit(child_, RLIMIT_FSIZE, &limit, nullptr) != 0) throw std::runtime_error("cannot limit files");
  }

  // Reads to the end and returns the exit status, 128 plus the signal that ended the program, or -1 if it does not end.
  int status() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10) * slowness;
    while (std::chrono::steady_clock::now() < deadline) {
      read_more();
      int status = 0;
      if (waitpid(child_, &status, WNOHANG) != child_) continue;
      child_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return -1;
  }

 private:
  bool read_more() {
    pollfd input{terminal_, POLLIN, 0};
    if (poll(&input, 1, 50) <= 0) return true;
    std::array<char, 4096> buffer;
    const ssize_t size = read(terminal_, buffer.data(), buffer.size());
    if (size > 0) shown_.append(buffer.data(), static_cast<std::size_t>(size));
    return size > 0;
  }

  int terminal_ = -1;
  pid_t child_ = -1;
  std::string shown_;
  std::size_t seen_ = 0;
};

}  // namespace minimind
