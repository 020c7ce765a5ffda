#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/grammar/grammar.h"

namespace minimind {

// What GrammarBuilder finds out about a grammar. All of it takes time and memory in proportion to its size.

// Sets Rule::nullable and Grammar::bytes_to_end, or returns the name of a rule from which no text can ever be derived:
// the first that has a name. `names` [rules] are empty for rules that have none.
std::optional<std::string> measure_rules(Grammar& grammar, const std::vector<std::string>& names);

// Sets Rule::rank, or returns the name of a rule that is left recursive. A rule of the form R ::= x R with an x that
// may be empty is not: that derives R from R and nothing else.
std::optional<std::string> rank_rules(Grammar& grammar, const std::vector<std::string>& names);

}  // namespace minimind
