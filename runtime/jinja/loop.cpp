#include "runtime/jinja/loop.h"

#include <algorithm>
#include <memory>

namespace minimind::jinja {

std::optional<Value> Loop::advance() {
  std::optional<Value> item = next_ ? std::exchange(next_, std::nullopt) : items_();
  if (!item) return std::nullopt;
  ++index0;
  previous_ = std::exchange(current_, item);
  return item;
}

const std::optional<Value>& Loop::peek() {
  if (!next_) next_ = items_();
  return next_;
}

std::int64_t Loop::length(Context& context) {
  if (!size_) {
    auto rest = std::make_shared<std::vector<Value>>();
    while (auto item = items_()) {
      context.budget.make(sizeof(Value));
      rest->push_back(std::move(*item));
    }
    size_ = rest->size() + static_cast<std::size_t>(index0 + 1) + (next_ ? 1 : 0);
    items_ = [rest, at = std::size_t{0}]() mutable -> std::optional<Value> {
      return at < rest->size() ? std::optional((*rest)[at++]) : std::nullopt;
    };
  }
  return static_cast<std::int64_t>(*size_);
}

Value Loop::attribute(Context& context, std::string_view name) {
  if (name == "index0") return index0;
  if (name == "index") return index0 + 1;
  if (name == "first") return index0 == 0;
  if (name == "last") return !peek();
  if (name == "length") return length(context);
  if (name == "revindex") return length(context) - index0;
  if (name == "revindex0") return length(context) - index0 - 1;
  if (name == "depth") return std::int64_t{1};
  if (name == "depth0") return std::int64_t{0};
  if (name == "previtem") return index0 > 0 ? *previous_ : make_undefined("there is no previous item");
  if (name == "nextitem") return peek() ? *peek() : make_undefined("there is no next item");
  return make_undefined("a loop has no attribute '" + std::string(name) + "'");
}

bool Loop::changed(Context& context, const std::vector<Value>& values) {
  const auto same = [&](const Value& a, const Value& b) { return equal(a, b, context.budget); };
  if (last_changed_ && std::equal(last_changed_->begin(), last_changed_->end(), values.begin(), values.end(), same)) {
    return false;
  }
  last_changed_ = values;
  return true;
}

Value Loop::cycle(const std::vector<Value>& values) const {
  if (values.empty()) throw Failure("loop.cycle wants something to cycle through");
  return values[static_cast<std::size_t>(index0) % values.size()];
}

}  // namespace minimind::jinja
