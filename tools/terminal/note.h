#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <utility>

#include "tools/terminal/language.h"

namespace minimind {

// A line on standard error, in the language in force, that begins with the program's name. Where standard error is
// closed or full it is lost: what is said there must never end the work.
template <class... Args>
void note(fmt::format_string<Args...> english, Args&&... args) {
  const std::string line = "minimind: " + localized(english, std::forward<Args>(args)...) + "\n";
  std::fputs(line.c_str(), stderr);
}

}  // namespace minimind
