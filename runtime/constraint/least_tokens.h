#pragma once

#include <cstddef>

#include "runtime/generate/constraint.h"

namespace minimind {

// Returns what makes the constraint of a text that no end token ends within its first `least` tokens. `other`
// constrains the text, too; empty: nothing else does. If `other` allows only end tokens, the text ends earlier.
MakeConstraint with_least_tokens(std::size_t least, MakeConstraint other);

}  // namespace minimind
