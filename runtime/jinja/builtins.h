#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "runtime/jinja/value.h"

namespace minimind::jinja {

// Throw SyntaxError, at `offset`, if there is no filter or test of that name.
void require_filter(std::string_view name, std::size_t offset);
void require_test(std::string_view name, std::size_t offset);

// Throw Failure if there is none.
Value apply_filter(Context& context, std::string_view name, const Value& subject, const Arguments& arguments);
bool apply_test(Context& context, std::string_view name, const Value& subject, const Arguments& arguments);

}  // namespace minimind::jinja
