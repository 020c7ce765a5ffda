#pragma once

#include <string_view>
#include <vector>

#include "runtime/jinja/value.h"

namespace minimind::jinja {

// The filters that use no other filter, one table for each kind of value that they process.
const std::vector<Builtin>& text_filters();
const std::vector<Builtin>& number_filters();
const std::vector<Builtin>& sequence_filters();

}  // namespace minimind::jinja
