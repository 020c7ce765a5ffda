#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/code_points.h"

namespace minimind {

// The inverse of code_points_of().
std::string to_utf8(std::u32string_view text);

// Characters are extended grapheme clusters (Unicode Standard Annex 29): a letter with its marks, an emoji with its
// joiners. Positions count code points.

// Returns the end of the first character that ends after `position`, which must be less than text.size().
std::size_t character_end(std::u32string_view text, std::size_t position);

// Returns the start of the last character that starts before `position`, which must not be 0.
std::size_t character_begin(std::u32string_view text, std::size_t position);

// Words are runs of letters, digits and similar characters. They end at punctuation and between wide (two-column, e.g.
// Chinese) and narrow characters.

// Returns the end of the word at or after `position`; the text's end if none follows.
std::size_t word_end(std::u32string_view text, std::size_t position);

// Returns the start of the word before `position`; 0 if there is none.
std::size_t word_begin(std::u32string_view text, std::size_t position);

// A character on a terminal.
struct ShownCharacter {
  std::string bytes;
  std::size_t columns;              // at least 1
  std::vector<std::size_t> widths;  // of the parts that may be shown in different rows; their sum is columns
  bool certain;                     // every terminal uses that many columns; otherwise some use fewer
};

// Returns how to show a character. Control and invisible characters are escaped, as in ^C and <U+200B>. `character`
// must not be empty, a newline or a tab.
ShownCharacter show_character(std::u32string_view character);

}  // namespace minimind
