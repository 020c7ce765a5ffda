#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/jinja/ast.h"
#include "runtime/jinja/value.h"

// The operations of values, as Python's under Jinja2's sandbox. Unsupported operations throw Failure.

namespace minimind::jinja {

using Items = std::function<std::optional<Value>()>;

// Iterates as Python's iter() does: the characters of a string, the keys of a mapping, the rest of an iterator ...
Items items_of(Context& context, const Value& value);
bool is_iterable(const Value& value);
std::vector<Value> all_items_of(Context& context, const Value& value);

// len(), std::nullopt if the value has none.
std::optional<std::size_t> size_of(const Value& value);

// Returns the value of that key, null if there is none. Throws Failure for a key that is not hashable.
const Value* find_entry(Context& context, const Dict& dict, const Value& key);

// `item in container`.
bool contains(Context& context, const Value& container, const Value& item);

Value binary_operation(Context& context, Operator op, const Value& left, const Value& right);
bool compare(Context& context, Operator op, const Value& left, const Value& right);
Value negated(const Value& value);

// Returns str() of the value as a builtin's text. Throws Failure for escaped text, which would stay escaped in Python.
std::string text_argument(Context& context, const Value& value);

}  // namespace minimind::jinja
