#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "runtime/grammar/json_grammar.h"

namespace minimind {

struct JsonProperty {
  std::string name;
  JsonGrammar::Sequence value;
  bool required = false;
};

// What an object may hold beside its properties: names other than `excluded`, written without escapes.
struct JsonOtherProperties {
  JsonGrammar::Sequence value;
  std::vector<std::string> excluded;
  std::size_t min = 0;  // these two only where there are no properties
  std::optional<std::size_t> max;
};

// Objects with the properties in this order, those not required perhaps left out, and then others, if any. Throws Error
// when a name to exclude is longer than 1000 bytes.
JsonGrammar::Sequence object_of(JsonGrammar& grammar, const std::vector<JsonProperty>& properties,
                                const std::optional<JsonOtherProperties>& others);

}  // namespace minimind
