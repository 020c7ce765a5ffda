#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/jinja/budget.h"
#include "runtime/text/marked_text.h"

namespace minimind::jinja {

// Operations of Python's str, on well-formed UTF-8. Positions and lengths are in characters unless stated otherwise.

// Returns the byte at which character `index` starts; text.size() after the end.
std::size_t byte_of_character(std::string_view text, std::size_t index);

// Returns each character of `text` as a string.
std::vector<std::string_view> characters_of(std::string_view text);

// Returns the characters in the opposite order. `part` is a part of `text`.
MarkedText reversed(const MarkedText& text, std::string_view part, Budget& budget);

// str.isspace() of one character: White_Space and the four separators U+001C to U+001F.
bool is_python_space(char32_t character);

// Returns `text` without whitespace, or without the characters of `set`, at its ends.
enum class Ends { both, left, right };
std::string_view stripped(std::string_view text, const std::optional<std::string_view>& set, Ends ends, Budget& budget);

// Returns the first position of `wanted` in linear time, in bytes.
std::optional<std::size_t> find_first(std::string_view text, std::string_view wanted, std::size_t from_byte = 0);

// str.split: at most `limit` splits, any number if it is negative, at `separator` or, without one, at runs of
// whitespace. Throws Failure for an empty separator.
std::vector<std::string_view> split(std::string_view text, const std::optional<std::string_view>& separator,
                                    std::int64_t limit, Budget& budget);

// Returns the lines of a text that ends with a line feed, without the ends that str.splitlines knows.
std::vector<std::string_view> split_lines(std::string_view text, Budget& budget);

// str.replace: at most `limit` times, any number if it is negative. Throws Failure for an empty `old_text`.
MarkedText replaced(const MarkedText& whole, std::string_view old_text, const MarkedText& new_text, std::int64_t limit,
                    Budget& budget);

// Case mappings. Throw Failure for the few characters whose case is not one character or depends on its context.
MarkedText upper(const MarkedText& text);
MarkedText lower(const MarkedText& text);
MarkedText capitalized(const MarkedText& text);  // str.capitalize
MarkedText title(const MarkedText& text);        // str.title
MarkedText title_words(const MarkedText& text);  // the filter, where words start only after spaces and brackets

// Returns a backslash, the letter and a number in hexadecimal digits.
std::string hex_escape(char letter, std::uint32_t number, int digits);

// repr() of a str.
MarkedText quoted_text(const MarkedText& text);

// Returns `text` with the five characters of HTML as entities, as markupsafe does.
MarkedText escaped_html(const MarkedText& text);

}  // namespace minimind::jinja
