#pragma once

#include <string>
#include <string_view>

#include "weights/model/config.h"

namespace minimind {

// Returns the name that MiniMind's own code of that generation uses for the tensor `canonical`: the inverse of
// canonical_name. v1 and v2-early have their own names, in which the two matrices of an FFN that is not `gated` are w1
// and w2. All others have Hugging Face's names.
std::string minimind_name(Family family, std::string_view canonical, bool gated = true);

}  // namespace minimind
