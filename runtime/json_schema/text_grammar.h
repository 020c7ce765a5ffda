#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/grammar/grammar.h"

namespace minimind {

// Return the grammar of the texts that a regular expression of pattern.h matches from their start to their end, and of
// these texts, which must be UTF-8. The message of every Error starts with `source`: the expression is not supported,
// no text is allowed, or the grammar grows too large.
Grammar pattern_grammar(std::string_view pattern, const std::string& source);
Grammar choice_grammar(const std::vector<std::string>& texts, const std::string& source);

}  // namespace minimind
