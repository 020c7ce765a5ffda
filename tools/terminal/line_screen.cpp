#include "tools/terminal/line_screen.h"

#include <fmt/core.h>

#include <algorithm>

namespace minimind {
namespace {

std::string up(std::size_t rows) {
  return rows > 0 ? fmt::format("\x1b[{}A", rows) : "";
}

// The number of rows of `columns` columns, at least 1, into which a terminal wraps a row, and which of them has its
// column `column`.
struct Reflowed {
  std::size_t rows = 1, row_of_column = 0;
};
Reflowed reflow(const LineRow& row, std::size_t columns, std::size_t column) {
  Reflowed result;
  std::size_t used = 0, before = 0;
  for (const std::size_t width : row.widths) {
    if (used + width > columns && used > 0) {
      ++result.rows;
      used = 0;
    }
    if (before <= column) result.row_of_column = result.rows - 1;
    used += width;
    before += width;
  }
  return result;
}

}  // namespace

void LineScreen::forget() {
  shown_.clear();
  first_ = cursor_row_ = cursor_column_ = shown_columns_ = 0;
}

std::string LineScreen::clear() {
  forget();
  return escapes_ ? "\x1b[H\x1b[2J" : "\n";
}

std::string LineScreen::finish() {
  const std::size_t below = shown_.empty() ? 0 : shown_.size() - 1 - cursor_row_;
  forget();
  return std::string(below + 1, '\n');
}

// Computes the cursor's row from its place in the rows before a resize, and clears from the first row on.
std::string LineScreen::return_to_first_row(ScreenSize size) {
  const bool same = size.columns == size_.columns && size.rows == size_.rows;
  if (same) return up(cursor_row_);
  std::size_t above = 0;
  for (std::size_t i = 0; i < cursor_row_; ++i) above += reflow(shown_[i], size.columns, 0).rows;
  if (!shown_.empty()) above += reflow(shown_[cursor_row_], size.columns, cursor_column_).row_of_column;
  shown_.clear();
  size_ = size;
  return "\r" + up(std::min(above, size.rows - 1)) + "\x1b[J";
}

// Keeps the rows that fit, including the cursor's.
void LineScreen::choose_rows(LineLayout& layout, std::size_t rows) {
  const std::size_t count = std::min(rows, layout.rows.size());
  first_ = std::min(first_, layout.rows.size() - count);
  first_ = std::clamp(first_, layout.cursor_row < count ? 0 : layout.cursor_row - count + 1, layout.cursor_row);
  const auto begin = layout.rows.begin() + static_cast<std::ptrdiff_t>(first_);
  layout.rows = {begin, begin + static_cast<std::ptrdiff_t>(count)};
  layout.cursor_row -= first_;
}

std::string LineScreen::draw(const LineView& line, ScreenSize size) {
  if (!escapes_) return draw_one_row(line, size);
  // Turns the terminal's own wrapping off, so that every character is shown at its place.
  std::string out = "\x1b[?7l" + return_to_first_row(size);
  LineLayout layout = lay_out(line, size.columns);
  choose_rows(layout, size.rows);
  const std::size_t last = std::max(layout.rows.size(), shown_.size()) - 1;
  for (std::size_t i = 0; i <= last; ++i) {
    if (i > 0) out += "\r\n";
    if (i >= layout.rows.size()) {
      out += "\r\x1b[K";
    } else if (i >= shown_.size() || shown_[i].bytes != layout.rows[i].bytes) {
      out += "\r\x1b[K" + layout.rows[i].bytes;
    }
  }
  out += up(last - layout.cursor_row) + "\r";
  if (layout.cursor_column > 0) out += fmt::format("\x1b[{}C", layout.cursor_column);
  shown_ = std::move(layout.rows);
  cursor_row_ = layout.cursor_row;
  cursor_column_ = layout.cursor_column;
  return out + "\x1b[?7h";
}

std::string LineScreen::draw_one_row(const LineView& line, ScreenSize size) {
  const LineInOneRow row = lay_out_in_one_row(line, size.columns);
  const std::size_t to_clear = std::min(shown_columns_, size.columns - 1);
  const std::string rest(to_clear > row.columns ? to_clear - row.columns : 0, ' ');
  shown_columns_ = row.columns;
  return "\r" + row.before + row.after + rest + "\r" + row.before;
}

}  // namespace minimind
