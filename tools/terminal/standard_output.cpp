#include "tools/terminal/standard_output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/terminal/interrupt.h"
#include "tools/terminal/language.h"
#include "tools/terminal/terminal_text.h"

namespace minimind {
namespace {

class Output {
 public:
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() {  // of a program that failed
    try {
      flush();
    } catch (const OutputFailure&) {
    }
  }

  void put(std::string_view text) {
    if (!on_terminal_) return put_bytes(text);
    put_bytes(safe_.push(text));
    if (text.find('\n') != std::string_view::npos) flush();
  }

  // A file gets each text whole or not at all.
  void put_bytes(std::string_view bytes) {
    if (bytes.size() > sizeof buffer_ - used_) flush();
    if (bytes.size() > sizeof buffer_) return write(bytes);
    std::memcpy(buffer_ + used_, bytes.data(), bytes.size());
    used_ += bytes.size();
  }

  void flush() { write({buffer_, std::exchange(used_, 0)}); }

  void finish() {
    put_bytes(safe_.finish());
    flush();
  }

 private:
  // Waits for a slow reader, except when the program must end.
  static void write(std::string_view bytes) {
    constexpr int most_interruptions = 1;
    for (int interruptions = 0; !bytes.empty();) {
      const ssize_t written = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
      if (written < 0 && errno != EINTR) throw OutputFailure(errno);
      if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
      if (!bytes.empty() && must_end() && ++interruptions > most_interruptions) throw OutputFailure(EINTR);
    }
  }

  const bool on_terminal_ = isatty(STDOUT_FILENO) != 0;
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
    : std::runtime_error(error == EINTR
                             ? localized("interrupted; standard output is not read: the rest of the text is lost")
                             : fmt::format("standard output cannot be written: {}", std::strerror(error))) {}

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
