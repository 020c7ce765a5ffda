#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/jinja/budget.h"

namespace minimind::jinja {

// What Python's str does, on UTF-8 that is well formed. Positions and lengths are in characters unless said otherwise.

std::size_t count_characters(std::string_view text);

// The byte at which character `index` begins; text.size() after the end.
std::size_t byte_of_character(std::string_view text, std::size_t index);

// Each character of `text` as a text.
std::vector<std::string_view> characters_of(std::string_view text);

// str.isspace() of one character: White_Space and the four separators U+001C to U+001F.
bool is_python_space(char32_t character);

// Whether repr() shows the character as it is.
bool is_printable(char32_t character);

// `text` without whitespace, or without the characters of `set`, at its ends.
enum class Ends { both, left, right };
std::string_view stripped(std::string_view text, const std::optional<std::string_view>& set, Ends ends, Budget& budget);

// Where `wanted` is first or last found, in bytes.
std::optional<std::size_t> find_first(std::string_view text, std::string_view wanted, std::size_t from_byte = 0);
std::optional<std::size_t> find_last(std::string_view text, std::string_view wanted, Budget& budget);

// str.split and str.rsplit: at most `limit` cuts, any number if it is negative, at `separator` or, without one, at runs
// of whitespace. Throws Failure for an empty separator; rsplit requires one.
std::vector<std::string_view> split(std::string_view text, const std::optional<std::string_view>& separator,
                                    std::int64_t limit, Budget& budget);
std::vector<std::string_view> split_from_right(std::string_view text, const std::optional<std::string_view>& separator,
                                               std::int64_t limit, Budget& budget);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

// str.replace: at most `limit` times, any number when it is negative.
std::string replaced(std::string_view text, std::string_view old_text, std::string_view new_text, std::int64_t limit,
                     Budget& budget);
std::size_t count_occurrences(std::string_view text, std::string_view wanted);

// Case mappings. Throw Failure for the few characters whose case is not one character or depends on its place.
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalized(std::string_view text);  // str.capitalize
std::string title(std::string_view text);        // str.title
std::string title_words(std::string_view text);  // the filter, to which only space and brackets begin a word

// repr() of a str.
std::string quoted_text(std::string_view text);

// `text` with the five characters of HTML as entities, as markupsafe has them.
std::string escaped_html(std::string_view text);

}  // namespace minimind::jinja
