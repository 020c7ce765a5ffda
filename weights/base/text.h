#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace minimind {

inline constexpr std::string_view ascii_spaces = " \t\r\n";

// Returns `text` with its ASCII letters in lower case.
inline std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

// Returns the part of `text` without spaces at its ends.
inline std::string_view trimmed(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of(ascii_spaces), text.size());
  return text.substr(first, text.find_last_not_of(ascii_spaces) + 1 - first);
}

// Returns whether `text` is a number in decimal digits alone.
inline bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace minimind
