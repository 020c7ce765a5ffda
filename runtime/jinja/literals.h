#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "runtime/jinja/value.h"

namespace minimind::jinja {

struct Literal {
  Value value;      // a text, an integer or a float
  std::size_t end;  // the byte behind it
};

// The string or number that begins at byte `at` of the template, if one does. Throws SyntaxError for an escape that is
// malformed or names a character, and for numbers that 64 bits cannot hold.
std::optional<Literal> literal_at(std::string_view source, std::size_t at);

}  // namespace minimind::jinja
