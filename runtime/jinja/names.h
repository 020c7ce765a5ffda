#pragma once

#include "runtime/jinja/ast.h"

namespace minimind::jinja {

// Binds each name of the template to a variable, by the rules of Jinja2's compiler, before anything runs. Throws
// SyntaxError.
void bind_names(Template& parsed);

}  // namespace minimind::jinja
