#pragma once

#include <cstddef>
#include <string_view>

#include "tests/tools/terminal/screen_model.h"
#include "tools/terminal/line_edit.h"
#include "tools/terminal/line_keys.h"
#include "tools/terminal/line_screen.h"

namespace minimind {

// A line editor whose user types at a modelled terminal, on which some text is shown already.
class TypedLine {
 public:
  explicit TypedLine(std::string_view above = "") {
    edit_.remember("an earlier 句子 in 北京");
    edit_.remember("two\nlines");
    screen_.show(above);
    edit_.begin("> ", true);
    draw();
  }

  void type(std::string_view bytes) {
    keys_.push(bytes);
    while (const auto key = keys_.next()) press(*key);
    if (edit_.searching() && keys_.escape_waits()) press(keys_.take_escape());
    draw();
  }

  void resize(std::size_t columns, std::size_t rows) {
    columns_ = columns;
    rows_ = rows;
    screen_.resize(columns_, rows_);
    draw();
  }

  std::size_t columns() const { return columns_; }
  std::size_t rows() const { return rows_; }
  const ScreenModel& screen() const { return screen_; }
  LineView view() const { return edit_.view(); }

 private:
  void press(const PressedKey& key) {
    const LineAction action = edit_.press(key);
    if (action == LineAction::enter || action == LineAction::end_of_input) {
      edit_.remember(edit_.text());
      edit_.move_to_end();
      draw();
      screen_.show(line_.finish());
      edit_.begin("> ", true);
    } else if (action == LineAction::list_words) {
      screen_.show(line_.finish() + "/reset  /regenerate\n");
    }
  }

  void draw() { screen_.show(line_.draw(edit_.view(), {columns_, rows_})); }

  std::size_t columns_ = 80, rows_ = 24;
  ScreenModel screen_{columns_, rows_};
  LineEdit edit_{{"/reset", "/regenerate", "/undo"}};
  LineKeys keys_;
  LineScreen line_{true};
};

}  // namespace minimind
