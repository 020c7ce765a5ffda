#pragma once

#include <string_view>

#include "runtime/jinja/operations.h"

namespace minimind::jinja {

// Return `subject.name`, an attribute before an item, and `subject[key]`, an item before an attribute. Undefined if
// there is neither.
Value attribute_of(Context& context, const Value& subject, std::string_view name);
Value item_of(Context& context, const Value& subject, const Value& key);

// Returns `subject[start:stop:step]`; null represents an omitted bound.
Value slice_of(Context& context, const Value& subject, const Value* start, const Value* stop, const Value* step);

}  // namespace minimind::jinja
