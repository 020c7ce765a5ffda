#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace minimind {

enum class Utf8State : std::uint8_t {
  complete,   // one well-formed character
  malformed,  // bytes that no continuation can turn into a character
  truncated,  // a proper beginning of a character, truncated by the end of the input
};

// One step through UTF-8. What is not well formed is taken in maximal subparts (Unicode 15, section 3.9, table 3-8),
// each of which represents one U+FFFD: what Python's bytes.decode("utf-8", "replace") and Rust's from_utf8_lossy do.
struct Utf8Char {
  Utf8State state;
  char32_t code_point;  // U+FFFD unless complete
  std::size_t size;     // bytes taken, 1 to 4
};

// The first character of `bytes`, which is not empty.
Utf8Char first_utf8(std::string_view bytes);

// The last character of `text`, which is well-formed UTF-8 and not empty.
Utf8Char last_utf8(std::string_view text);

bool is_utf8(std::string_view bytes);

// Where the first byte stands that is part of no well-formed character; std::nullopt if all is UTF-8.
std::optional<std::size_t> first_not_utf8(std::string_view bytes);

// Appends the encoding of `character`, which must be a scalar value.
void append_utf8(std::string& text, char32_t character);

// `bytes` with every maximal subpart that is not well formed replaced by U+FFFD.
std::string to_utf8_lossy(std::string_view bytes);

// Turns a stream of bytes, cut anywhere, into text that never ends inside a character. Everything returned, joined,
// equals to_utf8_lossy() of all the bytes at once.
class Utf8Stream {
 public:
  // The text that `bytes` complete. At most 3 bytes are held back for the next call.
  std::string push(std::string_view bytes);

  // U+FFFD when the stream ended inside a character, otherwise nothing. The stream can then be used again.
  std::string finish();

 private:
  std::string pending_;  // a truncated character, or empty
};

}  // namespace minimind
