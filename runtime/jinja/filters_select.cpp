#include <algorithm>
#include <charconv>

#include "runtime/jinja/attribute_path.h"
#include "runtime/jinja/builtins.h"
#include "runtime/jinja/text.h"
#include "weights/io/quote.h"

// The filters that take each item by itself: map, select and their kin. They are lazy, as Jinja2's are.

namespace minimind::jinja {
namespace {

using Step = std::function<std::optional<Value>(const Value& item)>;  // nothing to leave the item out

Value lazy(Context& context, const Value& subject, Step step) {
  // What is false has no items, whether one could go through it or not.
  const auto next = [&context, subject, step = std::move(step), source = Items()]() mutable -> std::optional<Value> {
    if (!subject.truth()) return std::nullopt;
    if (!source) source = items_of(context, subject);
    while (const auto item = source()) {
      if (auto result = step(*item)) return result;
    }
    return std::nullopt;
  };
  return static_cast<Object*>(context.own<Iterator>(next));
}

const Value* find_keyword(const Arguments& arguments, std::string_view name) {
  const auto found = std::find_if(arguments.keywords.begin(), arguments.keywords.end(),
                                  [&](const auto& keyword) { return keyword.first == name; });
  return found == arguments.keywords.end() ? nullptr : &found->second;
}

Value map(Context& context, const Value& subject, const Arguments& arguments) {
  const Value* const attribute = find_keyword(arguments, "attribute");
  if (arguments.positional.empty() && attribute) {
    const Value* const if_undefined = find_keyword(arguments, "default");
    if (arguments.keywords.size() > (if_undefined ? 2u : 1u)) {
      throw Failure("'map' takes 'attribute' and 'default' and no other named arguments");
    }
    const bool has_default = if_undefined && !if_undefined->is_none();
    const AttributePath path(attribute, has_default ? std::optional(*if_undefined) : std::nullopt);
    return lazy(context, subject, [&context, path](const Value& item) { return path.follow(context, item); });
  }
  if (arguments.positional.empty()) throw Failure("'map' wants the name of a filter, or attribute=");
  const std::string filter = string_argument(arguments.positional[0], "the name of a filter").bytes;
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin());
  return lazy(context, subject,
              [&context, filter, rest](const Value& item) { return apply_filter(context, filter, item, rest); });
}

template <bool wanted, bool of_attribute>
Value choose(Context& context, const Value& subject, const Arguments& arguments) {
  Arguments rest = arguments;
  const auto take = [&]() {
    Value value = rest.positional.front();
    rest.positional.erase(rest.positional.begin());
    return value;
  };
  std::optional<AttributePath> path;
  if (of_attribute) {
    if (rest.positional.empty()) throw Failure("the name of an attribute is missing");
    const Value attribute = take();
    path.emplace(&attribute);
  }
  std::optional<std::string> test;
  if (!rest.positional.empty()) test = string_argument(take(), "the name of a test").bytes;
  return lazy(context, subject, [&context, path, test, rest](const Value& item) -> std::optional<Value> {
    const Value looked_at = path ? path->follow(context, item) : item;
    const bool holds = test ? apply_test(context, *test, looked_at, rest) : looked_at.truth();
    return holds == wanted ? std::optional(item) : std::nullopt;
  });
}

Value attribute(Context& context, const Value& subject, const Bound& arguments) {
  const std::string& name = string_argument(arguments.at(0), "the name of an attribute").bytes;
  if (!subject.dict() || find_method(subject, name).exists) return attribute_of(context, subject, name);
  return make_undefined("a mapping has no attribute " + minimind::quoted(name));
}

}  // namespace

AttributePath::AttributePath(const Value* attribute, std::optional<Value> if_undefined)
    : if_undefined_(std::move(if_undefined)) {
  if (!attribute || attribute->is_none()) return;
  const Text* const text = attribute->text();
  if (!text) {
    parts_.push_back(*attribute);
    return;
  }
  for (std::size_t at = 0; at <= text->bytes.size();) {
    const std::size_t end = std::min(text->bytes.find('.', at), text->bytes.size());
    const std::string part = text->bytes.substr(at, end - at);
    std::int64_t index = 0;
    const bool is_index = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    if (is_index && std::from_chars(part.data(), part.data() + part.size(), index).ec != std::errc()) {
      throw Failure("the index " + minimind::quoted(part) + " is too large");
    }
    parts_.push_back(is_index ? Value(index) : Value(part));
    at = end + 1;
  }
}

Value AttributePath::follow(Context& context, Value item) const {
  for (const Value& part : parts_) {
    item = item_of(context, item, part);
    if (if_undefined_ && item.is_undefined()) item = *if_undefined_;
  }
  return item;
}

Value sort_key(Context& context, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.text()) return value;
  return make_text(lower(text_argument(context, value)), context.budget);
}

const std::vector<Builtin>& selecting_filters() {
  static const std::vector<Builtin> table = {
      {"map", {}, 0, nullptr, map},
      {"select", {}, 0, nullptr, choose<true, false>},
      {"reject", {}, 0, nullptr, choose<false, false>},
      {"selectattr", {}, 0, nullptr, choose<true, true>},
      {"rejectattr", {}, 0, nullptr, choose<false, true>},
      {"attr", {"name"}, 1, attribute},
  };
  return table;
}

}  // namespace minimind::jinja
