#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <utility>

namespace minimind {

// A line on standard error that begins with the program's name. Where standard error is closed or full it is lost:
// what is said there must never end the work.
template <class... Args>
void note(fmt::format_string<Args...> format, Args&&... args) {
  const std::string line = "minimind: " + fmt::format(format, std::forward<Args>(args)...) + "\n";
  std::fputs(line.c_str(), stderr);
}

}  // namespace minimind
