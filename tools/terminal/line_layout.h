#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace minimind {

// A line being edited; its text may contain newlines.
struct LineView {
  std::u32string prompt;
  bool bold = false;  // the prompt
  std::u32string text;
  std::size_t cursor = 0;  // in code points of the text
};

struct LineRow {
  std::string bytes;                // the output that shows it, from the first column on
  std::vector<std::size_t> widths;  // in columns, of the parts that may be shown in different rows
};

struct LineLayout {
  std::vector<LineRow> rows;  // at least one
  std::size_t cursor_row = 0;
  std::size_t cursor_column = 0;  // less than the columns of the screen
};

// Lays a line out on a screen of `columns` columns, at least 1. No row is wider; a character wider than the screen is
// shown as a question mark. A cursor inside a character is shown after it.
LineLayout lay_out(const LineView& line, std::size_t columns);

// The part of a line around its cursor, in one row of less than `columns` columns. Newlines and tabs are shown as ^J
// and ^I.
struct LineInOneRow {
  std::string before, after;  // the cursor
  std::size_t columns = 0;
};
LineInOneRow lay_out_in_one_row(const LineView& line, std::size_t columns);

}  // namespace minimind
