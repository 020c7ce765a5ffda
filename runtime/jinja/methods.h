#pragma once

#include <string_view>
#include <vector>

#include "runtime/jinja/value.h"

namespace minimind::jinja {

// The entry of that name, null when there is none.
const Builtin* find_in(const std::vector<Builtin>& table, std::string_view name);

// A function that templates find under this name when they are not given a variable of that name, null when there is
// none. Throws Failure for those of Jinja2 that are not supported.
const Builtin* find_function(std::string_view name);

// What `subject.name` is called, if it is a method of this kind of value: in `builtin` the one that does it, null for
// one that is not supported, not safe or changes the value.
struct FoundMethod {
  bool exists = false;
  bool is_safe = true;  // false for what the sandbox hides
  const Builtin* builtin = nullptr;
};
FoundMethod find_method(const Value& subject, std::string_view name);

}  // namespace minimind::jinja
