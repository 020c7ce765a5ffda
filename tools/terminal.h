#pragma once

#include <termios.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace minimind {

// Makes the C library's characters UTF-8: those of the environment's locale where they are, else those of C.UTF-8.
// False when the system has neither.
bool use_utf8_characters();

// Whether `file` is a terminal that obeys escape sequences: not when TERM is dumb, unset or empty.
bool takes_escape_sequences(std::FILE* file);

// Whether `file` takes them and the user wants colours: not when NO_COLOR is set to something (https://no-color.org).
bool takes_styles(std::FILE* file);

// How wide the terminal is; 80 where that is not known.
std::size_t terminal_columns(std::FILE* file);

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

}  // namespace minimind
