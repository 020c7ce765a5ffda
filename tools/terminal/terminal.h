#pragma once

#include <termios.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace minimind {

// Whether `file` is a terminal that obeys escape sequences: not when TERM is dumb, unset or empty.
bool takes_escape_sequences(std::FILE* file);

// Whether `file` takes them and the user wants colours: not when NO_COLOR is set to something (https://no-color.org).
bool takes_styles(std::FILE* file);

struct ScreenSize {
  std::size_t columns;  // at least 1
  std::size_t rows;     // at least 1
};

// The size of the terminal `file`; 80 columns and 24 rows if the system does not know it.
ScreenSize screen_size(std::FILE* file);

enum class Style { plain, bold, dim, call };

// `text` between the escape sequences that turn a style on and off again; as it is where `styles` is false.
std::string styled(std::string_view text, Style style, bool styles);

// Keeps what is typed from being shown, in the middle of something else; it is not lost but read later. Does nothing
// when standard input is no terminal.
class NoEcho {
 public:
  NoEcho();
  NoEcho(const NoEcho&) = delete;
  NoEcho& operator=(const NoEcho&) = delete;
  ~NoEcho();

 private:
  bool changed_ = false;
  termios before_{};
};

// While it lives, the terminal on standard input hands over each byte as it is typed and shows none of them. Reading
// never waits. Does nothing when standard input is no terminal.
class RawInput {
 public:
  RawInput();
  RawInput(const RawInput&) = delete;
  RawInput& operator=(const RawInput&) = delete;
  ~RawInput();

 private:
  bool changed_ = false;
  termios before_{};
};

}  // namespace minimind
