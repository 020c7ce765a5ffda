#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace minimind {

// Whether a line, without its line feed, holds nothing and is skipped where lines are records.
inline bool is_empty_line(std::string_view line) {
  return line.empty() || line == "\r";
}

// Calls use(line, number) for each non-empty line of `text`, as --jsonl reads them. The first line is 1.
template <class Use>
void for_each_line(const std::string& text, Use use) {
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    ++number;
    if (!is_empty_line(line)) use(line, number);
    at = end + 1;
  }
}

// Returns the name of line `number` in messages. The input is standard input if `file` is empty.
inline std::string place_of_line(const std::string& file, std::size_t number) {
  return file.empty() ? fmt::format("line {} of the input", number) : fmt::format("{}: line {}", file, number);
}

}  // namespace minimind
