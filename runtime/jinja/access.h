#pragma once

#include <optional>
#include <vector>

#include "runtime/jinja/operations.h"

namespace minimind::jinja {

// Return `subject.name`, an attribute before an item, and `subject[key]`, an item before an attribute. Undefined if
// there is neither, and for an attribute that the sandbox hides.
Value attribute_of(Context& context, const Value& subject, std::string_view name);
Value item_of(Context& context, const Value& subject, const Value& key);

// Returns `subject[start:stop:step]`; null represents an omitted bound.
Value slice_of(Context& context, const Value& subject, const Value* start, const Value* stop, const Value* step);

// The argument `attribute` of a filter: a name, an index or several with dots between them, resolved from an item.
class AttributePath {
 public:
  // `attribute` is null or none for the item itself. `if_undefined` replaces an undefined value.
  AttributePath(const Value* attribute, std::optional<Value> if_undefined = std::nullopt);

  Value follow(Context& context, Value item) const;

 private:
  std::vector<Value> parts_;
  std::optional<Value> if_undefined_;
};

// Returns `value` in lower case if it is a string, unless case is significant.
Value sort_key(Context& context, const Value& value, bool case_sensitive);

// The variable `loop` of a for loop, which also fetches its items as late as possible.
struct Loop : Object {
  // `size` is the size of the sequence, std::nullopt if only iterating shows it.
  Loop(Items source, std::optional<std::size_t> sequence_size)
      : Object(Kind::loop), size_(sequence_size), items_(std::move(source)) {}

  // Returns the next item, to which all attributes refer afterwards.
  std::optional<Value> advance();

  // Undefined for an unknown name.
  Value attribute(Context& context, std::string_view name);

  std::int64_t index0 = -1;

 private:
  std::int64_t length(Context& context);
  const std::optional<Value>& peek();

  std::optional<std::size_t> size_;
  Items items_;
  std::optional<Value> next_, current_, previous_;
};

}  // namespace minimind::jinja
