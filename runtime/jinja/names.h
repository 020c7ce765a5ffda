#pragma once

#include "runtime/jinja/ast.h"

namespace minimind::jinja {

// Says what each name in the template means, by the rules of Jinja2's compiler (which name is whose is decided before
// anything runs). Throws SyntaxError.
void bind_names(Template& parsed);

}  // namespace minimind::jinja
