#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/terminal/language.h"
#include "tools/terminal/terminal_text.h"
#include "weights/base/fact.h"

namespace minimind {

// Writes a line, which ends with a line feed, to stderr, and waits until stderr takes it. If stderr is closed or its
// disk is full, the line is lost. Any thread may call this.
void write_error_line(std::string line);

// After this call a line that would have to wait is lost instead, as is what is over 4 KB of a line. The next line that
// is not lost says how many were. For a server: whoever does not read its log must not stop it.
void never_wait_for_standard_error();

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
inline void note(const std::vector<Fact>& facts) {
  for (const Fact& fact : facts) note("{}", localized(fact));
}

}  // namespace minimind
