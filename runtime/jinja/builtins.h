#pragma once

#include <cstddef>
#include <string_view>

#include "runtime/jinja/context.h"

namespace minimind::jinja {

// Throw SyntaxError, at `offset`, when there is no filter or test of that name here.
void require_filter(std::string_view name, std::size_t offset);
void require_test(std::string_view name, std::size_t offset);

// Throw Failure when there is none.
Value apply_filter(Context& context, std::string_view name, const Value& subject, const Arguments& arguments);
bool apply_test(Context& context, std::string_view name, const Value& subject, const Arguments& arguments);

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

// The tables, one for each kind of work.
const std::vector<Builtin>& text_filters();
const std::vector<Builtin>& number_filters();
const std::vector<Builtin>& sequence_filters();
const std::vector<Builtin>& selecting_filters();
const std::vector<Builtin>& text_methods();
const std::vector<Builtin>& layout_methods();
const std::vector<Builtin>& container_methods();

}  // namespace minimind::jinja
