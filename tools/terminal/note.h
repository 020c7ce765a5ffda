#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

#include "tools/terminal/language.h"
#include "tools/terminal/standard_error.h"
#include "tools/terminal/terminal_text.h"

namespace minimind {

// Returns the line of stderr for a text, starting with the program's name.
inline std::string note_line(std::string_view text) {
  return "minimind: " + terminal_line(text) + "\n";
}

// Prints a line to stderr in the current language, starting with the program's name. If stderr is closed or full, the
// line is lost: a note must never end the program.
template <class... Args>
void note(fmt::format_string<Args...> english, Args&&... args) {
  write_error_line(note_line(localized(english, std::forward<Args>(args)...)));
}

}  // namespace minimind
