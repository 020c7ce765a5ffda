#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace minimind {

// What is not well-formed UTF-8 becomes U+FFFD.
std::u32string to_code_points(std::string_view text);
std::string to_utf8(std::u32string_view text);

// Characters as a person sees them: a letter with its marks, an emoji with its joiners (Unicode Standard Annex 29,
// extended grapheme clusters). Positions count code points.

// The end of the first character that ends after `position`, which must be less than text.size().
std::size_t character_end(std::u32string_view text, std::size_t position);

// The beginning of the last character that begins before `position`, which must not be 0.
std::size_t character_begin(std::u32string_view text, std::size_t position);

// Words are runs of letters, digits and the like. Where characters that are two columns wide, as Chinese ones are, meet
// narrow ones, one word ends and another begins; so do they at punctuation.

// The end of the word at `position` or after it; the text's end if none follows.
std::size_t word_end(std::u32string_view text, std::size_t position);

// The beginning of the word before `position`; 0 if there is none.
std::size_t word_begin(std::u32string_view text, std::size_t position);

// How a terminal shows one character.
struct ShownCharacter {
  std::string bytes;
  std::size_t columns;              // at least 1
  std::vector<std::size_t> widths;  // of the parts that may come to stand in different rows; columns in all
  bool certain;                     // every terminal takes as many columns; for others some take fewer
};

// Control characters and what would be invisible are written out, as in ^C and <U+200B>. `character` is neither empty
// nor a newline nor a tab.
ShownCharacter show_character(std::u32string_view character);

}  // namespace minimind
