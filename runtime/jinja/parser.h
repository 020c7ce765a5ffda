#pragma once

#include <string_view>

#include "runtime/jinja/ast.h"

namespace minimind::jinja {

// Parses and binds `source`, which must be normalized (lexer.h) and well-formed UTF-8. Throws SyntaxError for templates
// that Jinja2 rejects and for unsupported features.
Template parse(std::string_view source);

}  // namespace minimind::jinja
