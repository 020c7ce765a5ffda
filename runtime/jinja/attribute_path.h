#pragma once

#include <optional>
#include <vector>

#include "runtime/jinja/operations.h"

namespace minimind::jinja {

// The argument `attribute` of a filter: a name, an index or several with dots between them, followed from an item on.
class AttributePath {
 public:
  // `attribute` is null or none for the item itself. `if_undefined` stands for what is not there.
  AttributePath(const Value* attribute, std::optional<Value> if_undefined = std::nullopt);

  Value follow(Context& context, Value item) const;

 private:
  std::vector<Value> parts_;
  std::optional<Value> if_undefined_;
};

// `value` in lower case if it is a text, unless case is to be told apart.
Value sort_key(Context& context, const Value& value, bool case_sensitive);

}  // namespace minimind::jinja
