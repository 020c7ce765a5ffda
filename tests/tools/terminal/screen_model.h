#pragma once

#include <utf8proc.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tools/terminal/line_text.h"

namespace minimind {

// A terminal, as far as line editing requires: rows that scroll, wide characters, and rows that wrap, also when the
// terminal becomes narrower. utf8proc gives the width of each code point.
class ScreenModel {
 public:
  ScreenModel(std::size_t columns, std::size_t rows) : columns_(columns), height_(rows), lines_(1) {}

  void show(std::string_view bytes) {
    const std::u32string text = code_points_of(bytes);
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (text[at] == '\x1b') {
        at = obey(text, at + 1);
      } else {
        put(text[at]);
      }
    }
  }

  // Resizes as tmux does: breaks lines before a character that does not fit, and joins lines that the terminal broke.
  void resize(std::size_t columns, std::size_t rows) {
    std::vector<Line> joined;
    std::size_t cursor_line = 0, cursor_offset = 0;
    bool continued = false;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (!continued) joined.emplace_back();
      if (i == row_) {
        cursor_line = joined.size() - 1;
        cursor_offset = joined.back().cells.size() + column_;
      }
      joined.back().cells.insert(joined.back().cells.end(), lines_[i].cells.begin(), lines_[i].cells.end());
      continued = lines_[i].continued;
    }
    columns_ = columns;
    height_ = rows;
    lines_.clear();
    for (std::size_t i = 0; i < joined.size(); ++i) cut(joined[i].cells, i == cursor_line ? &cursor_offset : nullptr);
    lines_.resize(std::max(row_ + 1, lines_.size()));
    // Empty lines after the cursor are removed first.
    while (lines_.size() > row_ + 1 && lines_.back().cells.empty()) lines_.pop_back();
  }

  // All characters in reading order without spaces, and those before the cursor.
  std::u32string text() const { return text_before(lines_.size(), 0); }
  std::u32string text_before_cursor() const { return text_before(row_, column_); }

  // The visible rows without trailing spaces.
  std::vector<std::string> rows() const {
    std::vector<std::string> rows;
    for (std::size_t i = top(); i < lines_.size(); ++i) {
      std::u32string row;
      for (const std::u32string& cell : lines_[i].cells) row += cell;
      rows.push_back(to_utf8(row.substr(0, row.find_last_not_of(U' ') + 1)));
    }
    return rows;
  }

  std::size_t cursor_row() const { return row_ - top(); }
  std::size_t cursor_column() const { return column_; }

 private:
  // A wide character takes a cell and an empty cell after it.
  struct Line {
    std::vector<std::u32string> cells;
    bool continued = false;  // in the next line, because the row was full
  };

  std::size_t top() const { return lines_.size() > height_ ? lines_.size() - height_ : 0; }

  std::u32string text_before(std::size_t row, std::size_t column) const {
    std::u32string text;
    for (std::size_t i = 0; i < lines_.size() && i <= row; ++i) {
      const auto& cells = lines_[i].cells;
      for (std::size_t j = 0; j < cells.size() && (i < row || j < column); ++j) text += cells[j];
    }
    std::erase(text, U' ');
    return text;
  }

  void cut(const std::vector<std::u32string>& cells, const std::size_t* cursor) {
    lines_.emplace_back();
    std::size_t begin = 0;
    for (std::size_t at = 0; at < cells.size();) {
      const std::size_t width = at + 1 < cells.size() && cells[at + 1].empty() ? 2 : 1;
      if (lines_.back().cells.size() + width > columns_ && !lines_.back().cells.empty()) {
        lines_.back().continued = true;
        lines_.emplace_back();
        begin = at;
      }
      for (std::size_t i = 0; i < width; ++i) {
        if (cursor && *cursor == at + i) set_cursor(at + i - begin);
        lines_.back().cells.push_back(cells[at + i]);
      }
      at += width;
    }
    if (cursor && *cursor >= cells.size()) set_cursor(*cursor - begin);
  }

  void set_cursor(std::size_t column) {
    row_ = lines_.size() - 1;
    column_ = std::min(column, columns_ - 1);
  }

  void line_feed() {
    if (++row_ == lines_.size()) lines_.emplace_back();
  }

  void put(char32_t c) {
    if (c == '\r') return void(column_ = 0);
    if (c == '\n') return column_ = 0, line_feed();  // the system turns it into a carriage return and a line feed
    if (c == '\a') return;
    if (c < ' ' || c == 0x7F) throw std::runtime_error("a control character reached the terminal");
    const auto width = static_cast<std::size_t>(utf8proc_charwidth(static_cast<utf8proc_int32_t>(c)));
    if (width == 0) return add_mark(c);
    if (width > columns_) throw std::runtime_error("a character is wider than the screen");
    if (column_ + width > columns_) {
      if (!wraps_) throw std::runtime_error("a character does not fit in its row");
      lines_[row_].continued = true;
      column_ = 0;
      line_feed();
    }
    auto& cells = lines_[row_].cells;
    if (cells.size() < column_ + width) cells.resize(column_ + width, U" ");
    cells[column_] = std::u32string(1, c);
    if (width == 2) cells[column_ + 1].clear();
    column_ += width;
  }

  void add_mark(char32_t c) {
    auto& cells = lines_[row_].cells;
    if (column_ == 0) throw std::runtime_error("a mark has no character");
    std::size_t at = column_ - 1;
    if (cells[at].empty() && at > 0) --at;
    cells[at] += c;
  }

  // Returns the position of the last character of the sequence.
  std::size_t obey(std::u32string_view text, std::size_t at) {
    if (at >= text.size() || text[at] != '[') throw std::runtime_error("an unknown sequence");
    const std::size_t begin = ++at;
    while (at < text.size() && (text[at] < 0x40 || text[at] > 0x7E)) ++at;
    const std::string parameters = to_utf8(text.substr(begin, at - begin));
    const std::size_t count = parameters.empty() || parameters[0] == '?' ? 1 : std::stoul(parameters);
    switch (text.at(at)) {
      case 'A':
        row_ -= std::min(count, row_ - top());
        break;
      case 'C':
        column_ = std::min(column_ + count, columns_ - 1);
        break;
      case 'G':
        column_ = std::min(count, columns_) - 1;
        break;
      case 'K':
        erase_right();
        break;
      case 'J':
        lines_.resize(row_ + 1);
        erase_right();
        break;
      case 'h':
      case 'l':
        if (parameters == "?7") wraps_ = text[at] == 'h';
        break;
      case 'm':
        break;
      default:
        throw std::runtime_error("an unknown sequence");
    }
    return at;
  }

  void erase_right() {
    Line& line = lines_[row_];
    line.cells.resize(std::min(line.cells.size(), column_));
    line.continued = false;
  }

  std::size_t columns_, height_;
  std::vector<Line> lines_;  // the last height_ are visible
  std::size_t row_ = 0;      // of lines_
  std::size_t column_ = 0;   // columns_ if the last column was written
  bool wraps_ = true;
};

}  // namespace minimind
