#include "runtime/jinja/builtins.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "runtime/jinja/access.h"
#include "runtime/jinja/filters.h"
#include "runtime/jinja/lexer.h"
#include "runtime/jinja/methods.h"
#include "runtime/jinja/operations.h"
#include "runtime/jinja/show.h"
#include "runtime/jinja/text.h"
#include "weights/io/quote.h"

namespace minimind::jinja {
namespace {

// The filters that process each item separately, such as map and select. They are lazy, as Jinja2's are.

using Step = std::function<std::optional<Value>(const Value& item)>;  // std::nullopt omits the item

Value lazy(Context& context, const Value& subject, Step step) {
  // A false value has no items, even if it is not iterable.
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
  if (arguments.positional.empty()) throw Failure("'map' requires the name of a filter, or attribute=");
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

const std::vector<Builtin>& selecting_filters() {
  static const std::vector<Builtin> table = {
      {"map", {}, 0, nullptr, map},
      {"select", {}, 0, nullptr, choose<true, false>},
      {"reject", {}, 0, nullptr, choose<false, false>},
      {"selectattr", {}, 0, nullptr, choose<true, true>},
      {"rejectattr", {}, 0, nullptr, choose<false, true>},
  };
  return table;
}

Value remainder(Context& context, const Value& subject, const Value& divisor) {
  return binary_operation(context, Operator::modulo, subject, divisor);
}

template <int wanted>
Value is_of_parity(Context& context, const Value& subject, const Bound&) {
  return equal(remainder(context, subject, std::int64_t{2}), std::int64_t{wanted}, context.budget);
}

template <Operator op>
Value compares(Context& context, const Value& subject, const Bound& arguments) {
  return compare(context, op, subject, arguments.at(0));
}

Value is_divisible(Context& context, const Value& subject, const Bound& arguments) {
  return equal(remainder(context, subject, arguments.at(0)), std::int64_t{0}, context.budget);
}

Value is_sequence(Context&, const Value& subject, const Bound&) {
  return subject.is_undefined() || subject.text() || subject.list() || subject.dict() || subject.range();
}

template <bool wanted>
Value is_boolean_of(Context&, const Value& subject, const Bound&) {
  return subject.is_bool() && subject.truth() == wanted;
}

using Run = decltype(Builtin::run);

constexpr Run is_defined = [](Context&, const Value& s, const Bound&) -> Value { return !s.is_undefined(); };
constexpr Run is_undefined = [](Context&, const Value& s, const Bound&) -> Value { return s.is_undefined(); };
constexpr Run is_none = [](Context&, const Value& s, const Bound&) -> Value { return s.is_none(); };
constexpr Run is_boolean = [](Context&, const Value& s, const Bound&) -> Value { return s.is_bool(); };
constexpr Run is_integer = [](Context&, const Value& s, const Bound&) -> Value {
  return s.get_if<std::int64_t>() != nullptr;
};
constexpr Run is_float = [](Context&, const Value& s, const Bound&) -> Value { return s.get_if<double>() != nullptr; };
constexpr Run is_number = [](Context&, const Value& s, const Bound&) -> Value { return s.is_number(); };
constexpr Run is_string = [](Context&, const Value& s, const Bound&) -> Value { return s.text() != nullptr; };
constexpr Run is_mapping = [](Context&, const Value& s, const Bound&) -> Value { return s.dict() != nullptr; };
constexpr Run can_iterate = [](Context&, const Value& s, const Bound&) -> Value { return is_iterable(s); };
const std::vector<Builtin>& tests() {
  static const std::vector<Builtin> table = {
      {"odd", {}, 0, is_of_parity<1>},
      {"even", {}, 0, is_of_parity<0>},
      {"divisibleby", {"num"}, 1, is_divisible},
      {"defined", {}, 0, is_defined},
      {"undefined", {}, 0, is_undefined},
      {"none", {}, 0, is_none},
      {"boolean", {}, 0, is_boolean},
      {"true", {}, 0, is_boolean_of<true>},
      {"false", {}, 0, is_boolean_of<false>},
      {"integer", {}, 0, is_integer},
      {"float", {}, 0, is_float},
      {"number", {}, 0, is_number},
      {"string", {}, 0, is_string},
      {"mapping", {}, 0, is_mapping},
      {"sequence", {}, 0, is_sequence},
      {"iterable", {}, 0, can_iterate},
      {"in", {"seq"}, 1, compares<Operator::in>},
      {"==", {"b"}, 1, compares<Operator::equal>},
      {"eq", {"b"}, 1, compares<Operator::equal>},
      {"equalto", {"b"}, 1, compares<Operator::equal>},
      {"!=", {"b"}, 1, compares<Operator::not_equal>},
      {"ne", {"b"}, 1, compares<Operator::not_equal>},
      {">", {"b"}, 1, compares<Operator::greater>},
      {"gt", {"b"}, 1, compares<Operator::greater>},
      {"greaterthan", {"b"}, 1, compares<Operator::greater>},
      {">=", {"b"}, 1, compares<Operator::greater_equal>},
      {"ge", {"b"}, 1, compares<Operator::greater_equal>},
      {"<", {"b"}, 1, compares<Operator::less>},
      {"lt", {"b"}, 1, compares<Operator::less>},
      {"lessthan", {"b"}, 1, compares<Operator::less>},
      {"<=", {"b"}, 1, compares<Operator::less_equal>},
      {"le", {"b"}, 1, compares<Operator::less_equal>},
  };
  return table;
}

// Filters and tests of Jinja2 that are not supported.
constexpr std::array unsupported_filters = {
    "abs",     "attr",     "batch",     "center", "e",         "escape",   "filesizeformat", "forceescape",
    "groupby", "max",      "min",       "pprint", "random",    "round",    "slice",          "striptags",
    "sum",     "truncate", "urlencode", "urlize", "wordcount", "wordwrap", "xmlattr"};
constexpr std::array unsupported_tests = {"callable", "escaped", "filter", "lower", "sameas", "test", "upper"};

const Builtin* find_filter(std::string_view name) {
  for (const auto* const table : {&text_filters(), &number_filters(), &sequence_filters(), &selecting_filters()}) {
    if (const Builtin* const found = find_in(*table, name)) return found;
  }
  return nullptr;
}

template <std::size_t n>
bool is_listed(std::string_view name, const std::array<const char*, n>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string no_filter(std::string_view name) {
  return (is_listed(name, unsupported_filters) ? "unsupported filter " : "unknown filter ") + quote(name);
}

std::string no_test(std::string_view name) {
  return (is_listed(name, unsupported_tests) ? "unsupported test " : "unknown test ") + quote(name);
}

}  // namespace

void require_filter(std::string_view name, std::size_t offset) {
  if (!find_filter(name)) throw SyntaxError(offset, no_filter(name));
}

void require_test(std::string_view name, std::size_t offset) {
  if (!find_in(tests(), name)) throw SyntaxError(offset, no_test(name));
}

Value apply_filter(Context& context, std::string_view name, const Value& subject, const Arguments& arguments) {
  const Builtin* const filter = find_filter(name);
  if (!filter) throw Failure(no_filter(name));
  return run_builtin(context, *filter, subject, arguments);
}

bool apply_test(Context& context, std::string_view name, const Value& subject, const Arguments& arguments) {
  const Builtin* const test = find_in(tests(), name);
  if (!test) throw Failure(no_test(name));
  return run_builtin(context, *test, subject, arguments).truth();
}

}  // namespace minimind::jinja
