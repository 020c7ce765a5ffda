#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace minimind {

// GPT-2's printable spelling of bytes, in which vocabularies and merges are written: the bytes 21..7E, A1..AC and
// AE..FF stand for themselves as code points, the other 68, in order, are U+0100 to U+0143 (a space is U+0120, "Ġ").

// `bytes` in that spelling, as UTF-8.
std::string to_byte_level(std::string_view bytes);

// The bytes that `text` spells; nothing when a character of it is outside the alphabet, or it is not UTF-8.
std::optional<std::string> from_byte_level(std::string_view text);

}  // namespace minimind
