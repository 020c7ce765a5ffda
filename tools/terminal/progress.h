#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace minimind {

enum class ProgressUnit { tokens, bytes, texts, share };  // share: only the percentage is shown

// Returns a line such as "logits [=====>      ] 45% 12 of 27 tokens", followed by `suffix`, of at most `columns`
// columns. If it does not fit, the bar is omitted first, then the suffix. Bytes are shown in MB.
std::string progress_line(std::string_view label, std::size_t done, std::size_t total, ProgressUnit unit,
                          std::string_view suffix, std::size_t columns);

// Shows that line on stderr, updates it, and clears it at the end. Does nothing if stderr is not a terminal.
class Progress {
 public:
  Progress(std::string label, std::size_t total, ProgressUnit unit);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  // May be called often: it draws at most 20 times per second.
  void show(std::size_t done, std::string_view suffix = {});

  // Whether a line is on the terminal, which these bytes clear. For handlers of signals.
  static bool is_shown() noexcept;
  static constexpr const char* clearing = "\r\x1b[K";

 private:
  std::string label_;
  std::size_t total_;
  ProgressUnit unit_;
  bool on_terminal_;
  std::chrono::steady_clock::time_point next_draw_;
};

}  // namespace minimind
