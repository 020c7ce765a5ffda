#pragma once

#include <cstddef>

#include "runtime/jinja/operations.h"
#include "runtime/jinja/parser.h"

namespace minimind::jinja {

// Returns the text of a template for these variables, with the marks of the parts that come from marked ones. Throws
// Failure; `offset` is then the position in the template.
MarkedText interpret(const Template& parsed, const Dict& variables, Context& context, std::size_t& offset);

}  // namespace minimind::jinja
