#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/jinja/budget.h"

namespace minimind::jinja {

// Operations of Python's str, on well-formed UTF-8. Positions and lengths are in characters unless stated otherwise.

std::size_t count_characters(std::string_view text);

// Returns the byte at which character `index` starts; text.size() after the end.
std::size_t byte_of_character(std::string_view text, std::size_t index);

// Returns each character of `text` as a string.
std::vector<std::string_view> characters_of(std::string_view text);

// str.isspace() of one character: White_Space and the four separators U+001C to U+001F.
bool is_python_space(char32_t character);

// Returns true if repr() shows the character unescaped.
bool is_printable(char32_t character);

// Returns `text` without whitespace, or without the characters of `set`, at its ends.
enum class Ends { both, left, right };
std::string_view stripped(std::string_view text, const std::optional<std::string_view>& set, Ends ends, Budget& budget);

// Return the first or last position of `wanted`, in bytes.
std::optional<std::size_t> find_first(std::string_view text, std::string_view wanted, std::size_t from_byte = 0);
std::optional<std::size_t> find_last(std::string_view text, std::string_view wanted, Budget& budget);

// str.split and str.rsplit: at most `limit` splits, any number if it is negative, at `separator` or, without one, at
// runs of whitespace. Throw Failure for an empty separator; rsplit requires a separator.
std::vector<std::string_view> split(std::string_view text, const std::optional<std::string_view>& separator,
                                    std::int64_t limit, Budget& budget);
std::vector<std::string_view> split_from_right(std::string_view text, const std::optional<std::string_view>& separator,
                                               std::int64_t limit, Budget& budget);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

// str.replace: at most `limit` times, any number if it is negative.
std::string replaced(std::string_view text, std::string_view old_text, std::string_view new_text, std::int64_t limit,
                     Budget& budget);
std::size_t count_occurrences(std::string_view text, std::string_view wanted);

// Case mappings. Throw Failure for the few characters whose case is not one character or depends on its context.
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalized(std::string_view text);  // str.capitalize
std::string title(std::string_view text);        // str.title
std::string title_words(std::string_view text);  // the filter, where words start only after spaces and brackets

// repr() of a str.
std::string quoted_text(std::string_view text);

// Returns `text` with the five characters of HTML as entities, as markupsafe does.
std::string escaped_html(std::string_view text);

}  // namespace minimind::jinja
