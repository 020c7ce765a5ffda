#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace minimind {

// Returns the columns of a character or of a text on a terminal: Chinese characters take two.
std::size_t columns_of(char32_t character);
std::size_t columns_in(std::string_view text);

// Returns `text`, padded with spaces to `columns` columns.
std::string padded(std::string_view text, std::size_t columns);

// Returns the text in lines of at most `columns` columns. Each line except the first starts with `indent` spaces, which
// count. Lines end at spaces and between Chinese characters, never before punctuation; words that cannot be divided may
// be longer.
std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent);

}  // namespace minimind
