#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tests/tools/terminal/typed_line.h"
#include "tools/terminal/line_layout.h"

namespace {

using namespace minimind;

void check_cursor(const TypedLine& line) {
  const LineLayout layout = lay_out(line.view(), line.columns());
  if (layout.cursor_column >= line.columns() || line.screen().cursor_column() != layout.cursor_column) std::abort();
}

}  // namespace

// Types the input in pieces whose sizes it has itself: a byte below 200 is followed by as many bytes that arrive
// together, another one changes the size of the terminal.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  TypedLine line;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  while (!input.empty()) {
    const std::size_t first = static_cast<unsigned char>(input[0]);
    input.remove_prefix(1);
    if (first >= 200) {
      line.resize(1 + (first - 200) * 2, 1 + first % 30);
    } else {
      const std::string_view piece = input.substr(0, first + 1);
      line.type(piece);
      input.remove_prefix(piece.size());
    }
    check_cursor(line);
  }
  return 0;
}
