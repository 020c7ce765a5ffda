#include "runtime/jinja/filters.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "runtime/jinja/show.h"
#include "runtime/jinja/text.h"
#include "weights/base/text.h"

namespace minimind::jinja {

// The filters of texts and scalars. Those that are also methods of strings are in builtins.h.

namespace {

Value to_string(Context& context, const Value& subject, const Arguments&) {
  return subject.text() ? subject : make_text(shown(subject, context.budget), context.budget);
}

Value mark_safe(Context& context, const Value& subject, const Arguments&) {
  Text result(shown(subject, context.budget));
  result.markup = true;
  return std::make_shared<const Text>(std::move(result));
}

std::string spaces(Context& context, const Value& width) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(integer_argument(width, "an indentation"), 0));
  context.budget.make(count);
  return std::string(count, ' ');
}

Value indent(Context& context, const Value& subject, const Arguments& arguments) {
  MarkedText text = marked_argument(subject, "what to indent");
  context.budget.make(text.bytes.size());
  text.append("\n");
  const std::string indentation = arguments.get(0) ? spaces(context, *arguments.get(0)) : "    ";
  MarkedText result(arguments.flag(1) ? indentation : "");
  bool is_first = true;
  for (const std::string_view line : split_lines(text.bytes, context.budget)) {
    context.budget.make(line.size() + indentation.size() + 1);
    if (!std::exchange(is_first, false)) result.append(line.empty() ? "\n" : "\n" + indentation);
    result.append_part(text, line);
  }
  return make_text(std::move(result), context.budget);
}

Value format(Context& context, const Value& subject, const Arguments& arguments) {
  if (!arguments.keywords.empty()) throw Failure("a format with names is not supported");
  const Value values = make_list(arguments.positional, context.budget, List::Kind::tuple);
  return formatted(subject, values, context.budget);
}

Value to_json(Context& context, const Value& subject, const Arguments& arguments) {
  JsonStyle style;
  style.ensure_ascii = arguments.flag(0);
  if (const Value* const width = arguments.given(1)) {
    style.indent = spaces(context, *width);
    style.item_separator = ",";
  }
  if (const Value* const separators = arguments.given(2)) {
    const List* const pair = separators->list();
    if (!pair || pair->items.size() != 2) throw Failure("the separators of JSON are not a pair of strings");
    style.item_separator = string_argument(pair->items[0], "a separator of JSON");
    style.key_separator = string_argument(pair->items[1], "a separator of JSON");
  }
  return make_text(to_json(subject, style, context.budget), context.budget);
}

Value if_undefined(Context&, const Value& subject, const Arguments& arguments) {
  const bool is_replaced = subject.is_undefined() || (arguments.flag(1) && !subject.truth());
  if (!is_replaced) return subject;
  return arguments.get(0) ? *arguments.get(0) : Value("");
}

// The number that Python's float() reads in a text; std::nullopt if it reads none. Throws Failure for digits that are
// not ASCII's or have _ between them, which Python reads, too.
std::optional<double> float_in(std::string_view text, Budget& budget) {
  std::string_view number = stripped(text, {}, Ends::both, budget);
  budget.read(number.size());
  if (number.starts_with('+') && !number.starts_with("+-")) number.remove_prefix(1);
  double result = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), result);
  const bool is_whole = end == number.data() + number.size() && number.find('(') == std::string_view::npos;
  if (is_whole && error == std::errc()) return result;
  const auto is_other = [](char c) { return static_cast<unsigned char>(c) >= 0x80 || c == '_'; };
  if ((is_whole && error == std::errc::result_out_of_range) || std::ranges::any_of(number, is_other)) {
    throw Failure("reading the number " + quote(number) + " is not supported");
  }
  return std::nullopt;
}

// Towards zero. std::nullopt for what is not finite.
std::optional<std::int64_t> whole_part(double number) {
  if (!std::isfinite(number)) return std::nullopt;
  if (std::fabs(number) < 0x1p63) return static_cast<std::int64_t>(number);
  throw Failure("the number does not fit in an integer of 64 bits");
}

Value to_float(Context& context, const Value& subject, const Arguments& arguments) {
  require_defined(subject);
  if (subject.is_number()) return float_of(subject);
  const auto number = subject.text() ? float_in(subject.text()->bytes, context.budget) : std::nullopt;
  return number ? Value(*number) : arguments.get(0) ? *arguments.get(0) : Value(0.0);
}

Value absolute(Context&, const Value& subject, const Arguments&) {
  require_defined(subject);
  if (!subject.is_number()) throw Failure("'abs' got " + subject.kind_name() + ", expected a number");
  if (const auto* const number = subject.get_if<double>()) return std::fabs(*number);
  const std::int64_t number = *subject.integer();
  return number < 0 ? negated(subject) : Value(number);
}

// Python's round() for `precision` digits after the point, or the nearest number of so many digits above or below.
Value rounded(Context&, const Value& subject, const Arguments& arguments) {
  require_defined(subject);
  const std::int64_t precision = arguments.get(0) ? integer_argument(*arguments.get(0), "a precision") : 0;
  const std::string method = arguments.get(1) ? string_argument(*arguments.get(1), "a method") : "common";
  constexpr std::int64_t most_digits = 22;  // up to which 10^n is a float
  if (!subject.is_number()) throw Failure("'round' got " + subject.kind_name() + ", expected a number");
  if (precision < 0 || precision > most_digits) throw Failure("rounding to so many digits is not supported");
  if (method == "common" && subject.integer()) return *subject.integer();
  const double number = float_of(subject);
  if (method == "common") {
    // Exact, so that a tie is one; it goes to the even digit.
    return std::isfinite(number) ? *number_in<double>(fmt::format("{:.{}f}", number, precision)) : number;
  }
  if (method != "ceil" && method != "floor")
    throw Failure("a method is " + quote(method) + ", expected common, ceil or floor");
  const double factor = std::pow(10.0, static_cast<double>(precision));
  const double scaled = number * factor;
  if (!std::isfinite(scaled)) throw Failure("the number is not finite");
  return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / factor;
}

// int(), of texts only in decimal digits.
Value to_integer(Context& context, const Value& subject, const Arguments& arguments) {
  require_defined(subject);
  const Value otherwise = arguments.get(0) ? *arguments.get(0) : Value(std::int64_t{0});
  if (const auto integer = subject.integer()) return *integer;
  if (const auto* const number = subject.get_if<double>()) {
    if (std::isinf(*number)) throw Failure("an infinite number is not an integer");
    const auto whole = whole_part(*number);
    return whole ? Value(*whole) : otherwise;
  }
  if (const Text* const text = subject.text()) {
    std::string_view digits = stripped(text->bytes, {}, Ends::both, context.budget);
    context.budget.read(digits.size());
    if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (end == digits.data() + digits.size() && error == std::errc()) return number;
    if (end == digits.data() + digits.size() && error == std::errc::result_out_of_range) {
      throw Failure("the number does not fit in an integer of 64 bits");
    }
    if (const auto number_of_float = float_in(text->bytes, context.budget)) {
      if (const auto whole = whole_part(*number_of_float)) return *whole;
    }
  }
  return otherwise;
}

// The filters of sequences as a whole.

Value length(Context&, const Value& subject, const Arguments&) {
  const auto size = size_of(subject);
  if (!size) throw Failure(subject.kind_name() + " has no length");
  return static_cast<std::int64_t>(*size);
}

Value first(Context& context, const Value& subject, const Arguments&) {
  const std::vector<Value> items = items_of(context, subject);
  if (items.empty()) return make_undefined("there is no first item: the sequence is empty", context.budget);
  put_back(subject, items, 1);
  return items.front();
}

Value last(Context& context, const Value& subject, const Arguments&) {
  if (!size_of(subject)) throw Failure("cannot go backwards through " + subject.kind_name());
  const std::vector<Value> items = items_of(context, subject);
  return items.empty() ? make_undefined("there is no last item: the sequence is empty", context.budget) : items.back();
}

// What a filter returns that is a generator in Jinja2.
Value iterator_over(Context& context, std::vector<Value> items) {
  context.budget.make(items.size() * sizeof(Value));
  return static_cast<Object*>(context.own<Iterator>(std::move(items)));
}

Value reverse(Context& context, const Value& subject, const Arguments&) {
  if (subject.text()) {
    const MarkedText& text = marked_argument(subject, "what to reverse");
    return make_text(reversed(text, text.bytes, context.budget), context.budget);
  }
  std::vector<Value> items = items_of(context, subject);
  std::reverse(items.begin(), items.end());
  return size_of(subject) ? iterator_over(context, std::move(items)) : make_list(std::move(items), context.budget);
}

Value to_list(Context& context, const Value& subject, const Arguments&) {
  return make_list(items_of(context, subject), context.budget);
}

Value join(Context& context, const Value& subject, const Arguments& arguments) {
  const MarkedText separator = arguments.get(0) ? shown(*arguments.get(0), context.budget) : MarkedText();
  MarkedText result;
  bool is_first = true;
  for (const Value& item : items_of(context, subject)) {
    context.budget.make(separator.bytes.size());
    if (!std::exchange(is_first, false)) result.append(separator);
    result.append(shown(item, context.budget));
  }
  return make_text(std::move(result), context.budget);
}

// Returns the value at `path`, which is an index or names and indices with dots between them.
Value follow(Context& context, Value item, const Value& path) {
  if (path.integer()) return item_of(context, item, path);
  for (const std::string_view part : split(string_argument(path, "an attribute"), ".", -1, context.budget)) {
    const Value index = number_in<std::int64_t>(part).value_or(0);
    item = item_of(context, item, is_digits(part) ? index : make_text(std::string(part), context.budget));
  }
  return item;
}

// Returns `value` in lower case if it is a string, unless case is significant.
Value sort_key(Context& context, const Value& value, bool case_sensitive) {
  return case_sensitive || !value.text() ? value : mapped<lower>(context, value, {});
}

// Returns the items in the order of their keys.
Value sorted(Context& context, std::vector<std::pair<Value, Value>> entries, bool reverse) {
  std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
    return reverse ? less(b.first, a.first, false, context.budget) : less(a.first, b.first, false, context.budget);
  });
  std::vector<Value> items;
  for (auto& [key, item] : entries) items.push_back(std::move(item));
  return make_list(std::move(items), context.budget);
}

Value sort(Context& context, const Value& subject, const Arguments& arguments) {
  const Value* const attribute = arguments.given(2);
  if (attribute && attribute->text() && attribute->text()->bytes.find(',') != std::string::npos) {
    throw Failure("sorting by several attributes is not supported");
  }
  std::vector<std::pair<Value, Value>> entries;
  for (Value& item : items_of(context, subject)) {
    const Value part = attribute ? follow(context, item, *attribute) : item;
    entries.emplace_back(sort_key(context, part, arguments.flag(1)), std::move(item));
  }
  return sorted(context, std::move(entries), arguments.flag(0));
}

// The first of the smallest items, or of the largest if `largest`.
template <bool largest>
Value extreme(Context& context, const Value& subject, const Arguments& arguments) {
  const Value* const attribute = arguments.given(1);
  std::optional<std::pair<Value, Value>> best;  // the key and the item
  for (Value& item : items_of(context, subject)) {
    const Value part = attribute ? follow(context, item, *attribute) : item;
    Value key = sort_key(context, part, arguments.flag(0));
    const bool is_better = !best || (largest ? less(best->first, key, false, context.budget)
                                             : less(key, best->first, false, context.budget));
    if (is_better) best.emplace(std::move(key), std::move(item));
  }
  if (!best) return make_undefined("there is no smallest or largest item: the sequence is empty", context.budget);
  return std::move(best->second);
}

Value sum(Context& context, const Value& subject, const Arguments& arguments) {
  const Value* const attribute = arguments.given(0);
  Value result = arguments.get(1) ? *arguments.get(1) : Value(std::int64_t{0});
  if (result.text()) throw Failure("'sum' got a string to start with, expected a number or a list");
  for (const Value& item : items_of(context, subject)) {
    result = binary_operation(context, Operator::add, result, attribute ? follow(context, item, *attribute) : item);
  }
  return result;
}

Value dictsort(Context& context, const Value& subject, const Arguments&) {
  require_defined(subject);
  if (!subject.dict()) throw Failure("'dictsort' got " + subject.kind_name() + ", expected a mapping");
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [key, value] : subject.dict()->entries()) {
    const Value item = make_list({key, value}, context.budget, List::Kind::tuple);
    entries.emplace_back(sort_key(context, key, false), item);
  }
  return sorted(context, std::move(entries), false);
}

Value items(Context& context, const Value& subject, const Arguments&) {
  if (subject.is_undefined()) return iterator_over(context, {});
  if (!subject.dict()) throw Failure("'items' got " + subject.kind_name() + ", expected a mapping");
  return iterator_over(context, items_of(context, run_builtin(context, *find_method(subject, "items"), subject, {})));
}

Value unique(Context& context, const Value& subject, const Arguments&) {
  std::vector<Value> keys, items;
  for (Value& item : items_of(context, subject)) {
    Value key = sort_key(context, item, false);
    if (key.list() || key.dict()) throw Failure("'unique' of lists and mappings is not supported");
    const auto is_known = [&](const Value& known) { return equal(known, key, context.budget); };
    if (std::any_of(keys.begin(), keys.end(), is_known)) continue;
    keys.push_back(std::move(key));
    items.push_back(std::move(item));
  }
  return iterator_over(context, std::move(items));
}

// The filters that process each item separately.

// Returns the items of a value; a false value has none, even if it is not iterable.
std::vector<Value> items_to_filter(Context& context, const Value& subject) {
  return subject.truth() ? items_of(context, subject) : std::vector<Value>();
}

// Removes and returns the first positional argument.
Value take_first(Arguments& arguments) {
  Value value = std::move(arguments.positional.front());
  arguments.positional.erase(arguments.positional.begin());
  return value;
}

Value map(Context& context, const Value& subject, const Arguments& arguments) {
  std::vector<Value> items = items_to_filter(context, subject);
  const Value* const attribute = arguments.find("attribute");
  if (attribute && arguments.positional.empty() && arguments.keywords.size() == 1) {
    for (Value& item : items) item = follow(context, item, *attribute);
    return iterator_over(context, std::move(items));
  }
  if (arguments.positional.empty()) throw Failure("'map' takes the name of a filter or attribute= alone");
  Arguments rest = arguments;
  const Builtin& filter = filters().named(take_first(rest));
  for (Value& item : items) item = run_builtin(context, filter, item, rest);
  return iterator_over(context, std::move(items));
}

template <bool wanted, bool of_attribute>
Value choose(Context& context, const Value& subject, const Arguments& arguments) {
  Arguments rest = arguments;
  if (of_attribute && rest.positional.empty()) throw Failure("the name of an attribute is missing");
  const Value attribute = of_attribute ? take_first(rest) : Value();
  const Builtin* const test = rest.positional.empty() ? nullptr : &tests().named(take_first(rest));
  std::vector<Value> chosen;
  for (Value& item : items_to_filter(context, subject)) {
    const Value part = of_attribute ? follow(context, item, attribute) : item;
    const bool holds = (test ? run_builtin(context, *test, part, rest) : part).truth();
    if (holds == wanted) chosen.push_back(std::move(item));
  }
  return iterator_over(context, std::move(chosen));
}

// The tests.

template <int wanted>
Value is_of_parity(Context& context, const Value& subject, const Arguments&) {
  const Value remainder = binary_operation(context, Operator::modulo, subject, std::int64_t{2});
  return equal(remainder, std::int64_t{wanted}, context.budget);
}

Value is_divisible(Context& context, const Value& subject, const Arguments& arguments) {
  const Value remainder = binary_operation(context, Operator::modulo, subject, arguments.positional[0]);
  return equal(remainder, std::int64_t{0}, context.budget);
}

template <Operator op>
Value compares(Context& context, const Value& subject, const Arguments& arguments) {
  return binary_operation(context, op, subject, arguments.positional[0]);
}

// Makes a test of a function of the value alone.
template <auto holds>
Value is(Context&, const Value& subject, const Arguments&) {
  return static_cast<bool>(holds(subject));
}

bool has_sequence_methods(const Value& value) {
  return value.is_undefined() || value.text() || value.dict() || (value.list() && value.list()->is_sequence());
}

bool is_iterable(const Value& value) {
  return size_of(value).has_value() || value.object<Iterator>();
}

}  // namespace

const Catalogue& filters() {
  static const std::vector<Builtin> supported = {
      {"upper", Names{}, 0, mapped<upper>},
      {"lower", Names{}, 0, mapped<lower>},
      {"capitalize", Names{}, 0, mapped<capitalized>},
      {"title", Names{}, 0, mapped<title_words>},
      {"trim", Names{"chars"}, 0, strip_both},
      {"replace", Names{"old", "new", "count"}, 2, replace},
      {"string", Names{}, 0, to_string},
      {"safe", Names{}, 0, mark_safe},
      {"indent", Names{"width", "first"}, 0, indent},
      {"format", std::nullopt, 0, format},
      {"tojson", Names{"ensure_ascii", "indent", "separators"}, 0, to_json},
      {"default", Names{"default_value", "boolean"}, 0, if_undefined},
      {"d", Names{"default_value", "boolean"}, 0, if_undefined},
      {"int", Names{"default"}, 0, to_integer},
      {"float", Names{"default"}, 0, to_float},
      {"abs", Names{}, 0, absolute},
      {"round", Names{"precision", "method"}, 0, rounded},
      {"length", Names{}, 0, length},
      {"count", Names{}, 0, length},
      {"first", Names{}, 0, first},
      {"last", Names{}, 0, last},
      {"list", Names{}, 0, to_list},
      {"reverse", Names{}, 0, reverse},
      {"join", Names{"d"}, 0, join},
      {"sort", Names{"reverse", "case_sensitive", "attribute"}, 0, sort},
      {"min", Names{"case_sensitive", "attribute"}, 0, extreme<false>},
      {"max", Names{"case_sensitive", "attribute"}, 0, extreme<true>},
      {"sum", Names{"attribute", "start"}, 0, sum},
      {"dictsort", Names{}, 0, dictsort},
      {"items", Names{}, 0, items},
      {"unique", Names{}, 0, unique},
      {"map", std::nullopt, 0, map},
      {"select", std::nullopt, 0, choose<true, false>},
      {"reject", std::nullopt, 0, choose<false, false>},
      {"selectattr", std::nullopt, 0, choose<true, true>},
      {"rejectattr", std::nullopt, 0, choose<false, true>},
  };
  static const Catalogue all{
      "filter",
      supported,
      {"attr", "batch", "center", "e", "escape", "filesizeformat", "forceescape", "groupby", "pprint", "random",
       "slice", "striptags", "truncate", "urlencode", "urlize", "wordcount", "wordwrap", "xmlattr"}};
  return all;
}

const Catalogue& tests() {
  static const std::vector<Builtin> supported = {
      {"odd", Names{}, 0, is_of_parity<1>},
      {"even", Names{}, 0, is_of_parity<0>},
      {"divisibleby", Names{"num"}, 1, is_divisible},
      {"defined", Names{}, 0, is<[](const Value& v) { return !v.is_undefined(); }>},
      {"undefined", Names{}, 0, is<[](const Value& v) { return v.is_undefined(); }>},
      {"none", Names{}, 0, is<[](const Value& v) { return v.is_none(); }>},
      {"boolean", Names{}, 0, is<[](const Value& v) { return v.is_bool(); }>},
      {"true", Names{}, 0, is<[](const Value& v) { return v.is_bool() && v.truth(); }>},
      {"false", Names{}, 0, is<[](const Value& v) { return v.is_bool() && !v.truth(); }>},
      {"integer", Names{}, 0, is<[](const Value& v) { return v.get_if<std::int64_t>(); }>},
      {"float", Names{}, 0, is<[](const Value& v) { return v.get_if<double>(); }>},
      {"number", Names{}, 0, is<[](const Value& v) { return v.is_number(); }>},
      {"string", Names{}, 0, is<[](const Value& v) { return v.text(); }>},
      {"mapping", Names{}, 0, is<[](const Value& v) { return v.dict(); }>},
      {"sequence", Names{}, 0, is<has_sequence_methods>},
      {"iterable", Names{}, 0, is<is_iterable>},
      {"in", Names{"seq"}, 1, compares<Operator::in>},
      {"==", Names{"b"}, 1, compares<Operator::equal>},
      {"eq", Names{"b"}, 1, compares<Operator::equal>},
      {"equalto", Names{"b"}, 1, compares<Operator::equal>},
      {"!=", Names{"b"}, 1, compares<Operator::not_equal>},
      {"ne", Names{"b"}, 1, compares<Operator::not_equal>},
      {">", Names{"b"}, 1, compares<Operator::greater>},
      {"gt", Names{"b"}, 1, compares<Operator::greater>},
      {"greaterthan", Names{"b"}, 1, compares<Operator::greater>},
      {">=", Names{"b"}, 1, compares<Operator::greater_equal>},
      {"ge", Names{"b"}, 1, compares<Operator::greater_equal>},
      {"<", Names{"b"}, 1, compares<Operator::less>},
      {"lt", Names{"b"}, 1, compares<Operator::less>},
      {"lessthan", Names{"b"}, 1, compares<Operator::less>},
      {"<=", Names{"b"}, 1, compares<Operator::less_equal>},
      {"le", Names{"b"}, 1, compares<Operator::less_equal>},
  };
  static const Catalogue all{"test", supported, {"callable", "escaped", "filter", "lower", "sameas", "test", "upper"}};
  return all;
}

std::string Catalogue::missing(std::string_view name) const {
  const bool is_known = std::find(unsupported.begin(), unsupported.end(), name) != unsupported.end();
  return (is_known ? "unsupported " : "unknown ") + std::string(kind) + " " + quote(name);
}

const Builtin& Catalogue::named(const Value& name) const {
  const std::string& text = string_argument(name, "the name of a " + std::string(kind));
  const Builtin* const found = find(text);
  if (!found) throw Failure(missing(text));
  return *found;
}

}  // namespace minimind::jinja
