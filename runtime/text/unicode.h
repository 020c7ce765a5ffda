#pragma once

#include <cstdint>

namespace minimind {

// The character classes of Hugging Face `tokenizers` (0.23: Unicode 16 in both of its regular expression engines), from
// utf8proc. utf8proc 2.8 has Unicode 15.0; a table here adds 15.1 and 16.0.

// The four classes of the GPT-2 pattern: \p{L}, \p{N}, \s and the rest.
enum class CharClass : std::uint8_t { letter, number, space, other };

CharClass class_of(char32_t code_point);

// Returns true for \s, the Unicode property White_Space: U+0085 and U+00A0 have it; U+180E, U+200B and U+FEFF do not.
bool is_white_space(char32_t code_point);

// Returns true for \w of Unicode Technical Standard 18: alphabetic, marks, decimal digits, connectors (_) and the two
// joiners.
bool is_word_character(char32_t code_point);

}  // namespace minimind
