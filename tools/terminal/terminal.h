#pragma once

#include <termios.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace minimind {

// Whether `file` is a terminal that supports escape sequences: not if TERM is dumb, unset or empty.
bool takes_escape_sequences(std::FILE* file);

// Whether `file` supports them and the user allows colours: not if NO_COLOR is non-empty (https://no-color.org).
bool takes_styles(std::FILE* file);

struct ScreenSize {
  std::size_t columns;  // at least 1
  std::size_t rows;     // at least 1
};

// Returns the size of the terminal `file`; 80 columns and 24 rows if unknown.
ScreenSize screen_size(std::FILE* file);

enum class Style { plain, bold, dim, call };

// Returns `text` between the escape sequences that turn a style on and off; unchanged if `styles` is false.
std::string styled(std::string_view text, Style style, bool styles);

// A change of the terminal on stdin that ends with the object. Does nothing if stdin is not a terminal.
class ChangedInput {
 public:
  ChangedInput(const ChangedInput&) = delete;
  ChangedInput& operator=(const ChangedInput&) = delete;
  ~ChangedInput();

 protected:
  explicit ChangedInput(void (*change)(termios&));

 private:
  bool changed_ = false;
  termios before_{};
};

// Hides typed text during other output; the text is read later.
struct NoEcho : ChangedInput {
  NoEcho();
};

// The terminal delivers each byte as it is typed and shows none. Reading never blocks.
struct RawInput : ChangedInput {
  RawInput();
};

}  // namespace minimind
