#pragma once

#include <string>
#include <string_view>

#include "runtime/text/utf8.h"

namespace minimind {

// Makes text that is data safe to show on a terminal, which obeys control characters: all but newline and tab are
// written out, as in ^[ for escape, and so are those that reorder or hide what follows, as in <U+202E>. What is no
// UTF-8 becomes U+FFFD. A carriage return before a newline is dropped.
class TerminalText {
 public:
  // What can be shown of the stream so far.
  std::string push(std::string_view text);

  // What was held back at the end of the stream, which can then be used anew.
  std::string finish();

 private:
  Utf8Stream utf8_;
  bool held_return_ = false;  // a carriage return that a newline may follow
};

// A text that is whole.
std::string terminal_text(std::string_view text);

}  // namespace minimind
