#pragma once

#include <string>
#include <string_view>

#include "weights/model/config.h"

namespace minimind {

// The name under which MiniMind's own code of that generation keeps the tensor that is called `canonical` here: the
// inverse of canonical_name. v1 and v2-early have names of their own, in which the two matrices of a network that is
// not `gated` are w1 and w2; all others have Hugging Face's.
std::string minimind_name(Family family, std::string_view canonical, bool gated = true);

}  // namespace minimind
