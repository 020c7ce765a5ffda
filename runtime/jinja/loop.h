#pragma once

#include <optional>

#include "runtime/jinja/operations.h"

namespace minimind::jinja {

// The variable `loop` of a for loop, which also fetches its items, no earlier than they are needed.
struct Loop : Object {
  // `size` is that of the sequence, nothing when only going through it tells.
  Loop(Items source, std::optional<std::size_t> sequence_size)
      : Object(Kind::loop), size_(sequence_size), items_(std::move(source)) {}

  // The next item, after which all attributes are about it.
  std::optional<Value> advance();

  // Undefined for a name that is no attribute.
  Value attribute(Context& context, std::string_view name);
  bool changed(Context& context, const std::vector<Value>& values);
  Value cycle(const std::vector<Value>& values) const;

  std::int64_t index0 = -1;

 private:
  std::int64_t length(Context& context);
  const std::optional<Value>& peek();

  std::optional<std::size_t> size_;
  Items items_;
  std::optional<Value> next_, current_, previous_;
  std::optional<std::vector<Value>> last_changed_;
};

}  // namespace minimind::jinja
