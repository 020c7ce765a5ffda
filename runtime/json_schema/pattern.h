#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/json_schema/automaton.h"

namespace minimind {

// Where an expression must match: anywhere, with any characters around the match, or from the start of the string to
// its end.
enum class Matching : std::uint8_t { anywhere, whole };

// Returns the strings in which a regular expression of JSON Schema (ECMA-262 with its u flag) matches.
//
// Supported: | ( ) (?: ) (?<name> ) . [ ] [^ ] * + ? {m} {m,} {m,n}, lazy or not; ^ and $ anywhere; \b \B; (?= ) and
// (?! ); \d \D \w \W \s \S; \p{...} and \P{...} with a general category or Script=NAME; \t \n \v \f \r \0 \cX \xHH
// \uHHHH \u{H...} and escaped punctuation; (?i) at the start, after which case does not matter, as with the i flag, and
// (?i: ) and (?-i: ), in which it does not and does. As browsers do without the u flag, a { that starts no repetition,
// a } and a ] are themselves. Throws Error, with the position, for everything else: look-behind, back references, other
// properties. Throws Error, too, if the automaton would be too large.
Automaton pattern_automaton(std::string_view pattern, Matching matching = Matching::anywhere);

// Returns the strings of a format of JSON Schema; std::nullopt for a format that is not checked. That a host name has
// at most 253 characters is left to the caller.
std::optional<Automaton> format_automaton(std::string_view format);

}  // namespace minimind
