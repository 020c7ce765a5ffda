#pragma once

#include <string_view>

#include "runtime/jinja/ast.h"

namespace minimind::jinja {

// Parses and binds `source`, which is normalized (lexer.h) and well-formed UTF-8. Throws SyntaxError for what
// Jinja2 rejects and for what is not supported here.
Template parse(std::string_view source);

}  // namespace minimind::jinja
