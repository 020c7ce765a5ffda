#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/grammar/json_grammar.h"

namespace minimind {

// The JSON strings, quotes included, in which a regular expression of JSON Schema (ECMA-262 with its u flag) finds a
// match. Outside of the match, where it is not anchored, there may be anything.
//
// Supported: | ( ) (?: ) (?<name> ) . [ ] [^ ] * + ? {m} {m,} {m,n}, lazy or not; ^ where a top-level alternative
// begins and $ where it ends; \d \D \w \W \s \S; \t \n \v \f \r \0 \cX \xHH \uHHHH \u{H...} and escaped punctuation.
// Throws Error, naming the place, for everything else: look-around, \b, back references, \p{...}, inner anchors.
JsonGrammar::Sequence strings_with_match(JsonGrammar& grammar, std::string_view pattern);

// A regular expression, for strings_with_match(), of strings that have this format of JSON Schema; nothing for a format
// that is not known here. Dates are of the years 1000 to 9999, host names of at most four labels, addresses in their
// plain forms.
std::optional<std::string> pattern_of_format(std::string_view format);

}  // namespace minimind
