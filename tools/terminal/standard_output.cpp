#include "tools/terminal/standard_output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/terminal/terminal_text.h"

namespace minimind {
namespace {

class Output {
 public:
  Output() : on_terminal_(isatty(STDOUT_FILENO) != 0) {
    if (!on_terminal_) std::setvbuf(stdout, buffer_, _IOFBF, sizeof buffer_);
  }

  void put(std::string_view text) {
    if (on_terminal_) return put_bytes(safe_.push(text));
    if (text.size() >= sizeof buffer_ - used_) flush();
    if (text.size() >= sizeof buffer_) return write_at_once(text);
    put_bytes(text);
    used_ += text.size();
  }

  void put_bytes(std::string_view bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) throw OutputFailure(errno);
  }

  void flush() {
    if (std::fflush(stdout) != 0) throw OutputFailure(errno);
    used_ = 0;
  }

  void finish() {
    put_bytes(safe_.finish());
    flush();
  }

 private:
  // stdio would write a part and keep the rest.
  static void write_at_once(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
      if (written < 0 && errno != EINTR) throw OutputFailure(errno);
      if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  const bool on_terminal_;
  TerminalText safe_;
  std::size_t used_ = 0;  // bytes of buffer_
  static inline char buffer_[std::size_t{64} << 10];
};

Output& output() {
  static Output instance;
  return instance;
}

}  // namespace

OutputFailure::OutputFailure(int error)
    : std::runtime_error(fmt::format("standard output cannot be written: {}", std::strerror(error))) {}

void put_output(std::string_view text) {
  output().put(text);
}

void write_output(std::string_view text) {
  output().put(text);
  output().flush();
}

void write_sequences(std::string_view bytes) {
  output().put_bytes(bytes);
  output().flush();
}

void flush_output() {
  output().flush();
}

void finish_output() {
  output().finish();
}

}  // namespace minimind
