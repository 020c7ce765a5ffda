#include "runtime/jinja/value.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <compare>

#include "runtime/jinja/text.h"
#include "runtime/text/code_points.h"
#include "weights/base/text.h"

namespace minimind::jinja {
namespace {

[[noreturn]] void fail_too_deep() {
  throw Failure("nests lists and mappings too deeply, expected at most " + std::to_string(max_value_depth) + " levels");
}

// Exact: not every integer is a double, and not every double an integer.
std::partial_ordering compare_with_fraction(std::int64_t integer, double fraction) {
  constexpr double beyond = 0x1p63;
  if (std::isnan(fraction)) return std::partial_ordering::unordered;
  if (fraction >= beyond) return std::partial_ordering::less;
  if (fraction < -beyond) return std::partial_ordering::greater;
  const double whole = std::trunc(fraction);
  const auto order = integer <=> static_cast<std::int64_t>(whole);
  return order != 0 ? order : whole <=> fraction;
}

std::partial_ordering compare_numbers(const Value& a, const Value& b) {
  const auto *const x = a.get_if<double>(), *const y = b.get_if<double>();
  if (x && y) return *x <=> *y;
  if (x) return 0 <=> compare_with_fraction(*b.integer(), *x);
  if (y) return compare_with_fraction(*a.integer(), *y);
  return *a.integer() <=> *b.integer();
}

// Compares UTF-8, whose order is that of the code points.
int compare_texts(const Text& a, const Text& b, Budget& budget) {
  budget.scan(std::min(a.bytes.size(), b.bytes.size()));
  return a.bytes.compare(b.bytes);
}

bool lists_equal(const List& a, const List& b, Budget& budget) {
  if (!a.is_sequence() || !b.is_sequence()) throw Failure("comparing views of mappings is not supported");
  return a.kind == b.kind && std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(),
                                        [&](const Value& x, const Value& y) { return equal(x, y, budget); });
}

bool dicts_equal(const Dict& a, const Dict& b, Budget& budget) {
  return a.size() == b.size() && std::all_of(a.entries().begin(), a.entries().end(), [&](const Dict::Entry& entry) {
           const Value* const other = b.find(entry.first, budget);
           return other && equal(entry.second, *other, budget);
         });
}

}  // namespace

Text::Text(MarkedText text) : MarkedText(std::move(text)), length(count_characters(bytes)) {}

Value Object::attribute(std::string_view name) {
  return make_undefined(kind_name() + " has no attribute " + quote(name));
}

Value Object::call(const Arguments&) {
  throw Failure("cannot call " + kind_name());
}

bool Dict::KeyLess::operator()(const Value& a, const Value& b) const {
  if (a.text() && b.text()) return a.text()->bytes < b.text()->bytes;
  if (a.text() || b.text()) return !a.text();
  return *a.integer() < *b.integer();
}

const Value* Dict::find(const Value& key) const {
  if (key.dict() || key.list() || key.get_if<double>()) {
    throw Failure("cannot look for " + key.kind_name() + " among the keys of a mapping");
  }
  if (!key.text() && !key.integer()) return nullptr;
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

void Dict::set(Value key, Value value) {
  if (!key.text() && !key.get_if<std::int64_t>()) {
    throw Failure("a key of a mapping is " + key.kind_name() + ", expected a string or an integer: not supported");
  }
  depth_ = std::max(depth_, value.depth() + 1);
  if (depth_ > max_value_depth) fail_too_deep();
  const auto [known, is_new] = index_.emplace(key, entries_.size());
  if (is_new) {
    entries_.emplace_back(std::move(key), std::move(value));
  } else {
    entries_[known->second].second = std::move(value);
  }
}

namespace {

constexpr std::size_t index_node = 80;  // of the std::map

}  // namespace

// Each comparison of the search may read the whole key.
void Dict::pay_search(const Value& key, Budget& budget) const {
  if (key.text()) budget.scan(key.text()->bytes.size() * static_cast<std::size_t>(std::bit_width(size())));
}

void Dict::set(Value key, Value value, Budget& budget) {
  pay_search(key, budget);
  const std::size_t before = size(), bytes = key.text() ? sizeof(Text) + key.text()->bytes.size() : 0;
  set(std::move(key), std::move(value));
  if (size() > before) budget.make(sizeof(Entry) + index_node + bytes);
}

const Value* Dict::find(const Value& key, Budget& budget) const {
  pay_search(key, budget);
  return find(key);
}

std::optional<std::int64_t> Value::integer() const {
  if (const auto* const value = get_if<bool>()) return *value ? 1 : 0;
  if (const auto* const value = get_if<std::int64_t>()) return *value;
  return std::nullopt;
}

bool Value::truth() const {
  if (is_missing() || is_undefined() || is_none()) return false;
  if (const auto* const value = get_if<double>()) return *value != 0;
  if (const auto value = integer()) return *value != 0;
  if (const Text* const value = text()) return !value->bytes.empty();
  if (const List* const value = list()) return !value->items.empty();
  if (const Dict* const value = dict()) return value->size() != 0;
  return true;
}

std::string Value::kind_name() const {
  if (is_missing() || is_undefined()) return "an undefined value";
  if (is_none()) return "none";
  if (is_bool()) return "a boolean";
  if (get_if<std::int64_t>()) return "an integer";
  if (get_if<double>()) return "a float";
  if (text()) return "a string";
  if (dict()) return "a mapping";
  if (const Object* const value = object()) return value->kind_name();
  if (!list()) return "a function";
  switch (list()->kind) {
    case List::Kind::list:
      return "a list";
    case List::Kind::tuple:
      return "a tuple";
    case List::Kind::range:
      return "a range";
    default:
      return "a view of a mapping";
  }
}

std::size_t Value::depth() const {
  if (const List* const value = list()) return value->depth;
  if (const Dict* const value = dict()) return value->depth();
  if (const Method* const value = method()) return value->self.depth() + 1;
  return 0;
}

Value make_list(std::vector<Value> items, Budget& budget, List::Kind kind) {
  List list{.items = std::move(items), .kind = kind};
  for (const Value& item : list.items) list.depth = std::max(list.depth, item.depth() + 1);
  if (list.depth > max_value_depth) fail_too_deep();
  budget.make(sizeof(List) + list.items.size() * sizeof(Value));
  return std::make_shared<const List>(std::move(list));
}

Value make_text(MarkedText text, Budget& budget) {
  budget.make(sizeof(Text) + text.bytes.size() + text.marks.ranges().size() * sizeof(TextMarks::Range));
  return std::make_shared<const Text>(std::move(text));
}

Value make_text(std::string unmarked, Budget& budget) {
  return make_text(MarkedText(std::move(unmarked)), budget);
}

Value make_dict(Dict dict, Budget& budget) {
  budget.make(sizeof(Dict) + dict.size() * (sizeof(Dict::Entry) + index_node));
  return std::make_shared<const Dict>(std::move(dict));
}

Value make_undefined(std::string message) {
  return Undefined{std::make_shared<const std::string>(std::move(message))};
}

Value make_undefined(std::string message, Budget& budget) {
  budget.make(sizeof message + message.size());
  return make_undefined(std::move(message));
}

bool equal(const Value& a, const Value& b, Budget& budget) {
  budget.spend(1);
  const Budget::Level level(budget);
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.text() && b.text()) return compare_texts(*a.text(), *b.text(), budget) == 0;
  if (a.list() && b.list()) return lists_equal(*a.list(), *b.list(), budget);
  if (a.dict() && b.dict()) return dicts_equal(*a.dict(), *b.dict(), budget);
  if (a.method() && b.method()) throw Failure("comparing methods is not supported");
  if (a.object() || b.object()) return a.object() == b.object();
  return (a.is_undefined() && b.is_undefined()) || (a.is_none() && b.is_none());
}

bool less(const Value& a, const Value& b, bool or_equal, Budget& budget) {
  budget.spend(1);
  if (a.is_number() && b.is_number()) {
    const std::partial_ordering order = compare_numbers(a, b);
    return or_equal ? order <= 0 : order < 0;
  }
  if (a.text() && b.text()) return compare_texts(*a.text(), *b.text(), budget) < (or_equal ? 1 : 0);
  require_defined(a);
  require_defined(b);
  throw Failure("cannot order " + a.kind_name() + " and " + b.kind_name());
}

double float_of(const Value& number) {
  const auto integer = number.integer();
  return integer ? static_cast<double>(*integer) : *number.get_if<double>();
}

std::string python_float(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  // fmt writes an exponent for the same numbers as Python.
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

void require_defined(const Value& value) {
  if (const auto* const undefined = value.get_if<Undefined>()) throw Failure(*undefined->message);
}

std::int64_t integer_argument(const Value& value, std::string_view what) {
  require_defined(value);
  const auto number = value.integer();
  if (!number) throw Failure(std::string(what) + " is " + value.kind_name() + ", expected an integer");
  return *number;
}

const MarkedText& marked_argument(const Value& value, std::string_view what) {
  require_defined(value);
  const Text* const text = value.text();
  if (!text) throw Failure(std::string(what) + " is " + value.kind_name() + ", expected a string");
  if (text->markup) throw Failure("working with escaped text is not supported");
  return *text;
}

const std::string& string_argument(const Value& value, std::string_view what) {
  return marked_argument(value, what).bytes;
}

}  // namespace minimind::jinja
