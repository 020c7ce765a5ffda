#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace minimind {

enum class ProgressUnit { tokens, bytes, texts };

// "logits [=====>      ] 45% 12 of 27 tokens", with `suffix` after it, in at most `columns` columns. What does not
// fit is left out: the bar first, then the suffix. Bytes are shown in MB.
std::string progress_line(std::string_view label, std::size_t done, std::size_t total, ProgressUnit unit,
                          std::string_view suffix, std::size_t columns);

// That line on standard error, rewritten as the work goes on and wiped at the end; nothing at all when that is no
// terminal.
class Progress {
 public:
  Progress(std::string label, std::size_t total, ProgressUnit unit);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  // May be called as often as it is convenient: it draws at most 20 times a second.
  void show(std::size_t done, std::string_view suffix = {});

 private:
  std::string label_;
  std::size_t total_;
  ProgressUnit unit_;
  bool on_terminal_;
  std::chrono::steady_clock::time_point next_draw_;
};

}  // namespace minimind
