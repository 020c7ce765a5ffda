#pragma once

#include <optional>
#include <string_view>

#include "runtime/text/code_points.h"

namespace minimind {

// Returns the characters of a script of Unicode by its long or short name, such as Han or Hani; std::nullopt for any
// other name.
std::optional<CodePoints> characters_of_script(std::string_view name);

}  // namespace minimind
