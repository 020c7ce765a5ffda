#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

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

// Replaces `from`, which must not be empty, by `to` wherever it is.
inline void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Returns whether `text` is a number in decimal digits alone.
inline bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Removes the number at the start of `text` and returns it, as std::from_chars reads it; std::nullopt if there is none.
template <class Number, class... Base>
std::optional<Number> take_number(std::string_view& text, Base... base) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base...);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// Returns the number that all of `text` is; std::nullopt for any other text.
template <class Number, class... Base>
std::optional<Number> number_in(std::string_view text, Base... base) {
  const auto number = take_number<Number>(text, base...);
  return text.empty() ? number : std::nullopt;
}

// Returns whether this byte of well-formed UTF-8 is the first of a character.
constexpr bool starts_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0u) != 0x80u;
}

enum class Utf8State : std::uint8_t {
  complete,   // one well-formed character
  malformed,  // bytes that no continuation can turn into a character
  truncated,  // a valid prefix of a character, truncated by the end of the input
};

// One step through UTF-8. Ill-formed bytes are taken in maximal subparts (Unicode 15, section 3.9, table 3-8), each of
// which represents one U+FFFD. Python's bytes.decode("utf-8", "replace") and Rust's from_utf8_lossy do the same.
struct Utf8Char {
  Utf8State state;
  char32_t code_point;  // U+FFFD unless complete
  std::size_t size;     // bytes taken, 1 to 4
};

// Returns the first character of `bytes`, which must not be empty.
Utf8Char first_utf8(std::string_view bytes);

// Returns false for control characters, invisible ones and line breaks.
bool is_visible(char32_t character);

// Returns a name from a file, safe for a one-line message. It is in single quotes and truncated after 200 bytes.
// Control characters, invisible characters and bytes that are not UTF-8 are escaped.
std::string quote(std::string_view name);

// Returns true if `name` is a valid tensor name: 1 to 1000 bytes of UTF-8 without control or invisible characters. The
// limit is our own: PyTorch and safetensors have none, and MiniMind's longest name is below 100 bytes.
bool is_tensor_name(std::string_view name);

}  // namespace minimind
