#pragma once

#include <string_view>
#include <vector>

#include "runtime/jinja/context.h"

namespace minimind::jinja {

// The tests of `is`; each gives a boolean.
const std::vector<Builtin>& tests();

// Whether there is a filter or a test of that name here, for the tests `filter` and `test`.
bool is_filter(std::string_view name);
bool is_test(std::string_view name);

}  // namespace minimind::jinja
