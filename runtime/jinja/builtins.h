#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/jinja/operations.h"
#include "runtime/jinja/show.h"

namespace minimind::jinja {

// The arguments of a call.
struct Arguments {
  // Returns the positional argument, null if it is omitted.
  const Value* get(std::size_t index) const {
    return index < positional.size() && !positional[index].is_missing() ? &positional[index] : nullptr;
  }
  // Returns the positional argument, null if it is omitted or none.
  const Value* given(std::size_t index) const { return get(index) && !get(index)->is_none() ? get(index) : nullptr; }
  // Returns whether the positional argument is given and true.
  bool flag(std::size_t index) const { return get(index) && get(index)->truth(); }
  // Returns the keyword argument, null if it is omitted.
  const Value* find(std::string_view name) const;

  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> keywords;  // names in the template
};

// The names of parameters or methods.
using Names = std::vector<std::string_view>;

using Run = Value(Context& context, const Value& subject, const Arguments& arguments);

// A filter, test, function or method, applied to its subject.
struct Builtin {
  std::string_view name;
  // If given, all arguments are positional when `run` gets them, one for each parameter, and omitted ones are missing.
  std::optional<Names> parameters;
  std::size_t required;
  Run* run;
};

// Returns the entry of that name, null if there is none.
const Builtin* find_in(const std::vector<Builtin>& table, std::string_view name);

// Runs the builtin, and pays for its arguments. Throws Failure if the arguments do not fit the parameters.
Value run_builtin(Context& context, const Builtin& builtin, const Value& subject, Arguments arguments);

// Returns the function of this name for templates without a variable of this name, null if there is none. Throws
// Failure for Jinja2's functions that are not supported.
const Builtin* find_function(std::string_view name);

// Returns the method of this name for this kind of value, null if Python has none. Throws Failure for methods that are
// unsupported, unsafe or change the value.
const Builtin* find_method(const Value& subject, std::string_view name);

// The methods of strings that are also filters, whose subject can be any value.
Run strip_both, replace;

// The same for a method or filter that maps a text alone.
template <MarkedText (*map)(const MarkedText&)>
Value mapped(Context& context, const Value& subject, const Arguments&) {
  const MarkedText text = text_argument(subject, context.budget);
  context.budget.read(text.bytes.size());
  return make_text(map(text), context.budget);
}

// Return `subject.name`, an attribute before an item, and `subject[key]`, an item before an attribute. Undefined if
// there is neither.
Value attribute_of(Context& context, const Value& subject, std::string_view name);
Value item_of(Context& context, const Value& subject, const Value& key);

// Returns `subject[start:stop:step]`; null represents an omitted bound.
Value slice_of(Context& context, const Value& subject, const Value* start, const Value* stop, const Value* step);

}  // namespace minimind::jinja
