#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace minimind {

// Of a terminal: Chinese characters take two.
std::size_t columns_in(std::string_view text);

// `text`, followed by blanks up to this many columns.
std::string padded(std::string_view text, std::size_t columns);

// The text in lines of at most `columns` columns, each but the first after `indent` blanks, which count. Lines end at
// blanks and between Chinese characters, never before punctuation; what cannot be divided may be longer.
std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent);

}  // namespace minimind
