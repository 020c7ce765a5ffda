#include "tools/terminal/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <utility>

#include "tools/terminal/language.h"
#include "tools/terminal/terminal.h"
#include "tools/terminal/terminal_text.h"
#include "tools/terminal/text_columns.h"

namespace minimind {
namespace {

constexpr std::size_t widest_bar = 40;
constexpr std::size_t narrowest_bar = 8;
constexpr std::chrono::milliseconds between_draws{50};
std::atomic<bool> is_drawn{false};

std::string amount(std::size_t done, std::size_t total, ProgressUnit unit) {
  if (unit == ProgressUnit::tokens) return localized("{} of {} tokens", done, total);
  if (unit == ProgressUnit::texts) return localized("{} of {} texts", done, total);
  return localized("{:.1f} of {:.1f} MB", 1e-6 * static_cast<double>(done), 1e-6 * static_cast<double>(total));
}

// "[=====>      ]"
std::string bar(double fraction, std::size_t width) {
  const auto filled = static_cast<std::size_t>(fraction * static_cast<double>(width));
  std::string cells(filled, '=');
  if (filled < width) cells += '>';
  cells.resize(width, ' ');
  return "[" + cells + "]";
}

}  // namespace

std::string progress_line(std::string_view label, std::size_t done, std::size_t total, ProgressUnit unit,
                          std::string_view suffix, std::size_t columns) {
  const double fraction =
      done < total ? static_cast<double>(done) / static_cast<double>(total) : 1;  // a total of 0 is complete
  std::string count = fmt::format("{}%", static_cast<int>(100 * fraction));
  if (unit != ProgressUnit::share) count += ' ' + amount(done, total, unit);
  const std::string end = suffix.empty() ? count : fmt::format("{} {}", count, suffix);
  const std::size_t around_bar = columns_in(label) + columns_in(end) + 4;  // two spaces, two brackets
  if (around_bar + narrowest_bar <= columns) {
    return fmt::format("{} {} {}", label, bar(fraction, std::min(widest_bar, columns - around_bar)), end);
  }
  for (const std::string& shorter : {fmt::format("{} {}", label, end), fmt::format("{} {}", label, count), count}) {
    if (columns_in(shorter) <= columns) return shorter;
  }
  return count.substr(0, count.find(' ')).substr(0, columns);
}

Progress::Progress(std::string label, std::size_t total, ProgressUnit unit)
    : label_(std::move(label)), total_(total), unit_(unit), on_terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (!on_terminal_) return;
  std::fputs(clearing, stderr);
  is_drawn = false;
}

bool Progress::is_shown() noexcept {
  return is_drawn;
}

void Progress::show(std::size_t done, std::string_view suffix) {
  if (!on_terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_draw_) return;
  next_draw_ = now + between_draws;
  is_drawn = true;
  std::fputs(
      ("\r" + terminal_line(progress_line(label_, done, total_, unit_, suffix, screen_size(stderr).columns - 1)) +
       "\x1b[K")
          .c_str(),
      stderr);
}

}  // namespace minimind
