#pragma once

#include <string>
#include <string_view>

#include "runtime/jinja/builtins.h"

namespace minimind::jinja {

// Return the filter or test of this name, null if there is none; then no_filter() and no_test() return the reason.
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
std::string no_filter(std::string_view name);
std::string no_test(std::string_view name);

}  // namespace minimind::jinja
