#pragma once

#include <string>
#include <string_view>

namespace minimind {

// Returns `prefix` and 24 random letters and digits: no two calls give the same, in any process. Any thread may call.
std::string unique_id(std::string_view prefix);

}  // namespace minimind
