#pragma once

#include <optional>
#include <vector>

#include "runtime/jinja/operations.h"

namespace minimind::jinja {

// `subject.name`: an attribute before an item. `subject[key]`: an item before an attribute. Undefined when there is
// neither; for an attribute that the sandbox hides too.
Value attribute_of(Context& context, const Value& subject, std::string_view name);
Value item_of(Context& context, const Value& subject, const Value& key);

// `subject[start:stop:step]`; null is what was omitted.
Value slice_of(Context& context, const Value& subject, const Value* start, const Value* stop, const Value* step);

// The argument `attribute` of a filter: a name, an index or several with dots between them, followed from an item on.
class AttributePath {
 public:
  // `attribute` is null or none for the item itself. `if_undefined` represents what is not there.
  AttributePath(const Value* attribute, std::optional<Value> if_undefined = std::nullopt);

  Value follow(Context& context, Value item) const;

 private:
  std::vector<Value> parts_;
  std::optional<Value> if_undefined_;
};

// `value` in lower case if it is a text, unless case is to be told apart.
Value sort_key(Context& context, const Value& value, bool case_sensitive);

// The variable `loop` of a for loop, which also fetches its items, no earlier than they are needed.
struct Loop : Object {
  // `size` is that of the sequence, std::nullopt if only going through it tells.
  Loop(Items source, std::optional<std::size_t> sequence_size)
      : Object(Kind::loop), size_(sequence_size), items_(std::move(source)) {}

  // The next item, after which all attributes are about it.
  std::optional<Value> advance();

  // Undefined for a name that is no attribute.
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
