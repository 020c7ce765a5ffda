#pragma once

#include <cstddef>
#include <string>

#include "runtime/jinja/operations.h"
#include "runtime/jinja/parser.h"

namespace minimind::jinja {

// Returns the text of a template for these variables. Throws Failure; `offset` is then the position in the template.
std::string interpret(const Template& parsed, const Dict& variables, Context& context, std::size_t& offset);

}  // namespace minimind::jinja
