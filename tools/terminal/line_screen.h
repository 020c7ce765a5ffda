#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/terminal/line_layout.h"
#include "tools/terminal/terminal.h"

namespace minimind {

// Keeps a terminal's screen showing a line that changes: from the row on where the cursor stands at first, which must
// be in the first column. A line of more rows than the screen has is shown where its cursor is.
class LineScreen {
 public:
  // `escapes`: the terminal obeys escape sequences. Without, a line is shown in one row.
  explicit LineScreen(bool escapes) : escapes_(escapes) {}

  // The bytes that make the screen show `line`. What a terminal does to rows that do not fit when its size changes is
  // taken to be what most do: they go on in the next row.
  std::string draw(const LineView& line, ScreenSize size);

  // The bytes that begin a new row after those of the line.
  std::string finish();

  // The bytes that clear the screen.
  std::string clear();

  // The cursor is in a row that holds nothing: something else was shown.
  void forget();

 private:
  std::string draw_one_row(const LineView& line, ScreenSize size);
  std::string return_to_first_row(ScreenSize size);
  void choose_rows(LineLayout& layout, std::size_t rows);

  bool escapes_;
  ScreenSize size_{0, 0};
  std::vector<LineRow> shown_;
  std::size_t first_ = 0;  // the row of the layout that is shown first
  std::size_t cursor_row_ = 0, cursor_column_ = 0;
  std::size_t shown_columns_ = 0;  // of the one row without escape sequences
};

}  // namespace minimind
