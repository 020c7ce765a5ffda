#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/jinja/ast.h"
#include "runtime/jinja/context.h"

// What values can do, as Python's do it under Jinja2's sandbox. What they cannot do throws Failure.

namespace minimind::jinja {

using Items = std::function<std::optional<Value>()>;

// Goes through what Python's iter() goes through: the characters of a text, the keys of a mapping, the rest of an
// iterator ...
Items items_of(Context& context, const Value& value);
bool is_iterable(const Value& value);
std::vector<Value> all_items_of(Context& context, const Value& value);

// len(), nothing when the value has none.
std::optional<std::size_t> size_of(const Value& value);

// The value of that key, null when there is none. Throws Failure for a key that is not hashable.
const Value* find_entry(Context& context, const Dict& dict, const Value& key);

// `item in container`.
bool contains(Context& context, const Value& container, const Value& item);

Value binary_operation(Context& context, Operator op, const Value& left, const Value& right);
bool compare(Context& context, Operator op, const Value& left, const Value& right);
Value negated(const Value& value);

// `subject.name`: an attribute before an item. `subject[key]`: an item before an attribute. Undefined when there is
// neither; for an attribute that the sandbox hides too.
Value attribute_of(Context& context, const Value& subject, std::string_view name);
Value item_of(Context& context, const Value& subject, const Value& key);

// `subject[start:stop:step]`; null is what was left out.
Value slice_of(Context& context, const Value& subject, const Value* start, const Value* stop, const Value* step);

// Text that a builtin works on: str() of the value. Escaped text throws Failure, for it would stay escaped in Python.
std::string text_argument(Context& context, const Value& value);

// An argument that must be a whole number or a text; `what` says which it is.
std::int64_t integer_argument(const Value& value, std::string_view what);
const Text& string_argument(const Value& value, std::string_view what);

// Throws Failure for an undefined value, with the reason it has.
void require_defined(const Value& value);

}  // namespace minimind::jinja
