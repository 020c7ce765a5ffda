#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "tests/support/screen_model.h"
#include "tools/terminal/line_edit.h"
#include "tools/terminal/line_keys.h"
#include "tools/terminal/line_layout.h"
#include "tools/terminal/line_screen.h"

namespace {

using namespace minimind;

// A user at a terminal that is modelled, so that what is written to it is checked too.
class Terminal {
 public:
  Terminal() : screen_(columns_, rows_) {
    edit_.remember("an earlier 句子 in 北京");
    edit_.remember("two\nlines");
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
    screen_.resize(columns_ = columns, rows_ = rows);
    draw();
  }

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

  void draw() {
    screen_.show(line_.draw(edit_.view(), {columns_, rows_}));
    const LineLayout layout = lay_out(edit_.view(), columns_);
    if (layout.cursor_column >= columns_ || screen_.cursor_column() != layout.cursor_column) std::abort();
  }

  std::size_t columns_ = 80, rows_ = 24;
  ScreenModel screen_;
  LineEdit edit_{{"/reset", "/regenerate", "/undo"}};
  LineKeys keys_;
  LineScreen line_{true};
};

}  // namespace

// Types the input in pieces whose sizes it has itself: a byte below 200 is followed by as many bytes that arrive
// together, another one changes the size of the terminal.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Terminal terminal;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  while (!input.empty()) {
    const std::size_t first = static_cast<unsigned char>(input[0]);
    input.remove_prefix(1);
    if (first >= 200) {
      terminal.resize(1 + (first - 200) * 2, 1 + first % 30);
      continue;
    }
    const std::string_view piece = input.substr(0, first + 1);
    terminal.type(piece);
    input.remove_prefix(piece.size());
  }
  return 0;
}
