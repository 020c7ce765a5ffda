#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace minimind {

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

}  // namespace minimind
