#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/jinja/value.h"

// The operations of values, as Python's under Jinja2's sandbox. Unsupported operations throw Failure.

namespace minimind::jinja {

enum class Operator {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  concatenate,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
};

// The state of one rendering: its budget, its objects and the time of strftime_now.
class Context {
 public:
  Context(const Limits& limits, std::time_t time) : budget(limits), now(time) {}

  // Makes an object that lives as long as the rendering.
  template <class T, class... Parts>
  T* own(Parts&&... parts) {
    budget.make(sizeof(T) + 64);
    auto object = std::make_unique<T>(std::forward<Parts>(parts)...);
    T* const result = object.get();
    objects_.push_back(std::move(object));
    return result;
  }

  Budget budget;
  std::time_t now;

 private:
  std::vector<std::unique_ptr<Object>> objects_;
};

struct Namespace : Object {
  std::string kind_name() const override { return "a namespace"; }
  Value attribute(std::string_view name) override;
  // Throws Failure for a name that starts with an underscore.
  void set(const std::string& name, const Value& value, Budget& budget);

 private:
  Dict attributes_;
};

// A source of items that can be read once, as Python's generators.
struct Iterator : Object {
  explicit Iterator(std::vector<Value> all) : items(std::move(all)) {}
  std::string kind_name() const override { return "an iterator"; }
  std::vector<Value> items;
};

// Returns what Python's iter() does: the characters of a string, the keys of a mapping, the items of an iterator, which
// is empty afterwards ...
std::vector<Value> items_of(Context& context, const Value& value);

// Returns the items from `begin` on to the iterator that they were taken from; does nothing for other values.
void put_back(const Value& value, const std::vector<Value>& items, std::size_t begin);

// len(), std::nullopt if the value has none.
std::optional<std::size_t> size_of(const Value& value);

Value negated(const Value& value);

// Returns `left op right`.
Value binary_operation(Context& context, Operator op, const Value& left, const Value& right);

}  // namespace minimind::jinja
