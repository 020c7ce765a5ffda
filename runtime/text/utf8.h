#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "weights/base/text.h"

namespace minimind {

// Returns the last character of `text`, which must be well-formed UTF-8 and not empty.
Utf8Char last_utf8(std::string_view text);

// Returns `text`, which must be well-formed, without the characters at its end for which goes(code point) is true.
template <class Goes>
std::string_view without_end(std::string_view text, const Goes& goes) {
  while (!text.empty()) {
    const Utf8Char last = last_utf8(text);
    if (!goes(last.code_point)) break;
    text.remove_suffix(last.size);
  }
  return text;
}

bool is_utf8(std::string_view bytes);

// Returns the position of the first byte that is part of no well-formed character; std::nullopt if all is UTF-8.
std::optional<std::size_t> first_not_utf8(std::string_view bytes);

// Appends the encoding of `character`, which must be a scalar value.
void append_utf8(std::string& text, char32_t character);

// Returns `bytes` with every maximal ill-formed subpart replaced by U+FFFD.
std::string to_utf8_lossy(std::string_view bytes);

// A converter of a byte stream in arbitrary pieces into strings that never end inside a character. All results, joined,
// equal to_utf8_lossy() of all the bytes.
class Utf8Stream {
 public:
  // Returns the text that `bytes` complete. Keeps at most 3 bytes for the next call.
  std::string push(std::string_view bytes);

  // Returns U+FFFD if the stream ended inside a character, else an empty string. The stream can then be used again.
  std::string finish();

 private:
  std::string pending_;  // a truncated character, or empty
};

}  // namespace minimind
