#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/jinja/value.h"

namespace minimind::jinja {

// What one rendering shares: its budget, the objects it made and the time that strftime_now tells.
class Context {
 public:
  Context(const Limits& limits, std::time_t time) : budget(limits), now(time) {}

  // An object that lives as long as the rendering.
  template <class T, class... Arguments>
  T* own(Arguments&&... arguments) {
    budget.make(sizeof(T) + 64);
    auto object = std::make_unique<T>(std::forward<Arguments>(arguments)...);
    T* const result = object.get();
    objects_.push_back(std::move(object));
    return result;
  }

  Budget budget;
  std::time_t now;

 private:
  std::vector<std::unique_ptr<Object>> objects_;
};

// What a call is given.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
};

// Arguments by parameter, as a builtin gets them.
class Bound {
 public:
  explicit Bound(std::vector<Value> values) : values_(std::move(values)) {}

  // The argument, null where none is given.
  const Value* get(std::size_t parameter) const {
    return values_[parameter].is_missing() ? nullptr : &values_[parameter];
  }
  // One that is required.
  const Value& at(std::size_t parameter) const { return values_[parameter]; }

 private:
  std::vector<Value> values_;
};

// A filter, test, function or method: what it does to what stands before it.
struct Builtin {
  std::string_view name;
  std::vector<std::string_view> parameters;
  std::size_t required;
  Value (*run)(Context& context, const Value& subject, const Bound& arguments);
  // Where the parameters cannot be told beforehand, this instead.
  Value (*run_any)(Context& context, const Value& subject, const Arguments& arguments) = nullptr;
};

// Runs it. Throws Failure when the arguments do not fit the parameters.
Value run_builtin(Context& context, const Builtin& builtin, const Value& subject, const Arguments& arguments);

}  // namespace minimind::jinja
