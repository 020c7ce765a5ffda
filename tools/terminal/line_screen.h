#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/terminal/line_layout.h"
#include "tools/terminal/terminal.h"

namespace minimind {

// Shows a changing line on a terminal, from the row of the cursor on, which must start in the first column. Of a line
// with more rows than the screen, shows those around the cursor.
class LineScreen {
 public:
  // `escapes`: the terminal supports escape sequences. Otherwise a line is shown in one row.
  explicit LineScreen(bool escapes) : escapes_(escapes) {}

  // Returns the bytes that show `line`. Assumes that a terminal wraps rows that no longer fit after a resize, as most
  // do.
  std::string draw(const LineView& line, ScreenSize size);

  // Returns the bytes that start a new row after the line.
  std::string finish();

  // Returns the bytes that clear the screen.
  std::string clear();

  // Resets after other output: the cursor is in an empty row.
  void forget();

 private:
  std::string draw_one_row(const LineView& line, ScreenSize size);
  std::string return_to_first_row(ScreenSize size);
  void choose_rows(LineLayout& layout, std::size_t rows);

  bool escapes_;
  ScreenSize size_{0, 0};
  std::vector<LineRow> shown_;
  std::size_t first_ = 0;  // the first row of the layout that is shown
  std::size_t cursor_row_ = 0, cursor_column_ = 0;
  std::size_t shown_columns_ = 0;  // of the one row without escape sequences
};

}  // namespace minimind
