#pragma once

#include <fmt/core.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>

namespace minimind {

// "logits: 512 of 2048" on one line of standard error that is rewritten; nothing at all when that is no terminal.
// The line is wiped at the end.
class Progress {
 public:
  Progress(std::string label, std::size_t total)
      : label_(std::move(label)), total_(total), on_terminal_(isatty(STDERR_FILENO) != 0) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (on_terminal_) std::fputs("\r\x1b[K", stderr);
  }

  void show(std::size_t done) const {
    if (on_terminal_) std::fputs(fmt::format("\r{}: {} of {}", label_, done, total_).c_str(), stderr);
  }

 private:
  std::string label_;
  std::size_t total_;
  bool on_terminal_;
};

}  // namespace minimind
