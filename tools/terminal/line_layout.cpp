#include "tools/terminal/line_layout.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "tools/terminal/line_text.h"

namespace minimind {
namespace {

constexpr std::size_t tab_stop = 8;

ShownCharacter spaces(std::size_t count) {
  return {std::string(count, ' '), count, std::vector<std::size_t>(count, 1), true};
}

// Fills rows from left to right.
class RowFiller {
 public:
  explicit RowFiller(std::size_t columns) : columns_(columns) {}

  void set_bold(bool bold) {
    if (bold == bold_) return;
    layout_.rows.back().bytes += bold ? "\x1b[1m" : "\x1b[0m";
    bold_ = bold;
  }

  // Adds a character, with the cursor before it if `has_cursor`.
  void put(std::u32string_view character, bool has_cursor) {
    if (character.front() == '\n') {
      if (has_cursor) put_cursor();
      return begin_row();
    }
    const bool is_tab = character.front() == '\t';
    ShownCharacter shown = is_tab ? spaces(1) : show_character(character);
    if (shown.columns > columns_) shown = {"?", 1, {1}, true};
    if (column_ + shown.columns > columns_) begin_row();
    if (is_tab) shown = spaces(std::min(tab_stop - column_ % tab_stop, columns_ - column_));
    if (has_cursor) set_cursor(column_);
    LineRow& row = layout_.rows.back();
    row.bytes += shown.bytes;
    row.widths.insert(row.widths.end(), shown.widths.begin(), shown.widths.end());
    column_ += shown.columns;
    if (!shown.certain && column_ < columns_) row.bytes += fmt::format("\x1b[{}G", column_ + 1);
  }

  void put_cursor() {
    if (column_ == columns_) begin_row();
    set_cursor(column_);
  }

  LineLayout take() { return std::move(layout_); }

 private:
  void begin_row() {
    const bool bold = bold_;
    set_bold(false);
    layout_.rows.emplace_back();
    column_ = 0;
    set_bold(bold);
  }

  void set_cursor(std::size_t column) {
    layout_.cursor_row = layout_.rows.size() - 1;
    layout_.cursor_column = column;
  }

  std::size_t columns_;
  LineLayout layout_{{LineRow{}}, 0, 0};
  std::size_t column_ = 0;
  bool bold_ = false;
};

// Calls use(position, character) for each character.
template <class Use>
void for_each_character(std::u32string_view text, Use&& use) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_end(text.substr(at), 0);
    use(at, text.substr(at, size));
    at += size;
  }
}

}  // namespace

LineLayout lay_out(const LineView& line, std::size_t columns) {
  RowFiller rows(columns);
  rows.set_bold(line.bold);
  for_each_character(line.prompt, [&](std::size_t, std::u32string_view character) { rows.put(character, false); });
  rows.set_bold(false);
  bool cursor_put = false;
  for_each_character(line.text, [&](std::size_t at, std::u32string_view character) {
    const bool has_cursor = !cursor_put && line.cursor <= at;
    cursor_put |= has_cursor;
    rows.put(character, has_cursor);
  });
  if (!cursor_put) rows.put_cursor();
  return rows.take();
}

LineInOneRow lay_out_in_one_row(const LineView& line, std::size_t columns) {
  std::vector<ShownCharacter> characters;
  const auto add = [&](std::size_t, std::u32string_view character) {
    const bool is_separator = character.front() == '\n' || character.front() == '\t';
    const ShownCharacter separator{character.front() == '\n' ? "^J" : "^I", 2, {1, 1}, true};
    characters.push_back(is_separator ? separator : show_character(character));
  };
  for_each_character(line.prompt, add);
  std::size_t cursor = characters.size();
  for_each_character(line.text, [&](std::size_t at, std::u32string_view character) {
    add(at, character);
    if (at < line.cursor) cursor = characters.size();
  });
  LineInOneRow row;
  std::size_t begin = cursor;
  const auto fits = [&](std::size_t i) { return row.columns + characters[i].columns < columns; };
  while (begin > 0 && fits(begin - 1)) row.columns += characters[--begin].columns;
  for (std::size_t i = begin; i < cursor; ++i) row.before += characters[i].bytes;
  for (std::size_t i = cursor; i < characters.size() && fits(i); ++i) {
    row.columns += characters[i].columns;
    row.after += characters[i].bytes;
  }
  return row;
}

}  // namespace minimind
