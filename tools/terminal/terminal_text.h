#pragma once

#include <string>
#include <string_view>

#include "runtime/text/utf8.h"

namespace minimind {

// Makes text safe to show on a terminal. Control characters except newline and tab are escaped, as in ^[ for escape,
// and so are characters that reorder or hide text, as in <U+202E>. Malformed UTF-8 becomes U+FFFD. A carriage return
// before a newline is dropped.
class TerminalText {
 public:
  // Returns the text that can be shown of the stream so far.
  std::string push(std::string_view text);

  // Returns the pending text at the end of the stream. The object can then be reused.
  std::string finish();

 private:
  Utf8Stream utf8_;
  bool held_return_ = false;  // a carriage return that a newline may follow
};

// Makes a complete text safe.
std::string terminal_text(std::string_view text);

// Makes a text safe and one line: a space stands for each newline.
std::string terminal_line(std::string_view text);

}  // namespace minimind
