#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/grammar/json_grammar.h"

namespace minimind {

// Returns the JSON strings, quotes included, in which a regular expression of JSON Schema (ECMA-262 with its u flag)
// matches. Any characters may surround an unanchored match.
//
// Supported: | ( ) (?: ) (?<name> ) . [ ] [^ ] * + ? {m} {m,} {m,n}, lazy or not; ^ at the start and $ at the end of a
// top-level alternative; \d \D \w \W \s \S; \t \n \v \f \r \0 \cX \xHH \uHHHH \u{H...} and escaped punctuation.
// Throws Error, with the position, for everything else: look-around, \b, back references, \p{...}, inner anchors.
JsonGrammar::Sequence strings_with_match(JsonGrammar& grammar, std::string_view pattern);

// Returns a regular expression for strings_with_match() of the strings of this format of JSON Schema; std::nullopt for
// an unknown format. Dates are of the years 1000 to 9999, host names of at most four labels, addresses in their plain
// forms.
std::optional<std::string> pattern_of_format(std::string_view format);

}  // namespace minimind
