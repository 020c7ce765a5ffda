#pragma once

#include <string_view>
#include <vector>

#include "runtime/jinja/value.h"

namespace minimind::jinja {

// Returns the entry of that name, null if there is none.
const Builtin* find_in(const std::vector<Builtin>& table, std::string_view name);

// Returns the function of this name for templates without a variable of this name, null if there is none. Throws
// Failure for Jinja2's functions that are not supported.
const Builtin* find_function(std::string_view name);

// Looks up `subject.name` as a method of this kind of value. `builtin` is its implementation, null for a method that is
// unsupported, unsafe or changes the value.
struct FoundMethod {
  bool exists = false;
  bool is_safe = true;  // false for what the sandbox hides
  const Builtin* builtin = nullptr;
};
FoundMethod find_method(const Value& subject, std::string_view name);

}  // namespace minimind::jinja
