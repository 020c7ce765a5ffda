#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <istream>
#include <string>
#include <string_view>

#include "weights/base/error.h"

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

// Throws Error, naming the file, if a line is over 256 MiB: it must fit in memory.
inline void check_line(std::size_t bytes, const std::string& path) {
  constexpr std::size_t longest = std::size_t{256} << 20;
  if (bytes <= longest) return;
  throw Error(fmt::format("{}: has a line of over {} bytes, expected a record in each line", path, longest));
}

// Reads a line as std::getline does. Throws Error as check_line() does.
inline bool read_line(std::istream& in, std::string& line, const std::string& path) {
  line.clear();
  char piece[4096];
  while (in.getline(piece, sizeof piece).fail() && in.gcount() == sizeof piece - 1) {
    line.append(piece, sizeof piece - 1);
    in.clear();
    check_line(line.size(), path);
  }
  if (in.fail()) return !line.empty();
  line.append(piece, static_cast<std::size_t>(in.gcount()) - (in.eof() ? 0 : 1));
  return true;
}

// Returns the name of line `number` in messages. The input is standard input if `file` is empty.
inline std::string place_of_line(const std::string& file, std::size_t number) {
  return file.empty() ? fmt::format("line {} of the input", number) : fmt::format("{}: line {}", file, number);
}

}  // namespace minimind
