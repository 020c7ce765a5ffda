#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <utility>

#include "tools/terminal/language.h"

namespace minimind {

// Prints a line to stderr in the current language, starting with the program's name. If stderr is closed or full, the
// line is lost: a note must never end the program.
template <class... Args>
void note(fmt::format_string<Args...> english, Args&&... args) {
  const std::string line = "minimind: " + localized(english, std::forward<Args>(args)...) + "\n";
  std::fputs(line.c_str(), stderr);
}

}  // namespace minimind
