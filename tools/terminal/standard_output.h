#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>
#include <utility>

namespace minimind {

// Standard output cannot be written. Not an Error, because no command can continue without it.
class OutputFailure : public std::runtime_error {
 public:
  // `error`: as in errno; EINTR: the program must end, and stdout is a pipe that nobody reads.
  explicit OutputFailure(int error);
};

// Everything on stdout goes through these functions, which throw OutputFailure. Text is made safe for a terminal
// (terminal_text.h); a pipe or a file gets its bytes unchanged, and a file each text whole or not at all, even if a
// signal ends the program.

// Appends text, which may end inside a character.
void put_output(std::string_view text);

// Appends text and writes all of it immediately.
void write_output(std::string_view text);

// Writes our own escape sequences, with text that is safe, to a terminal.
void write_sequences(std::string_view bytes);

// Writes what was appended.
void flush_output();

// Writes what was appended, also a character that is not complete, at the end of the program.
void finish_output();

template <class... Args>
void print_output(fmt::format_string<Args...> format, Args&&... args) {
  put_output(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace minimind
