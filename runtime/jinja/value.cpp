#include "runtime/jinja/value.h"

#include <algorithm>
#include <cmath>

#include "runtime/jinja/text.h"
#include "weights/io/quote.h"

namespace minimind::jinja {
namespace {

constexpr std::size_t linear_search_up_to = 8;

[[noreturn]] void fail_too_deep() {
  throw Failure("nests lists and mappings too deeply, expected at most " + std::to_string(max_value_depth) + " levels");
}

// A rank for each group of keys that Python compares with one another.
int key_rank(const Value& key) {
  if (key.is_number()) return 0;
  if (key.text()) return 1;
  if (key.is_none()) return 2;
  if (key.is_undefined()) return 3;
  const bool is_hashable = !key.dict() && !key.view() && (!key.list() || key.list()->is_tuple);
  throw Failure("cannot use " + key.kind_name() + " as a key of a mapping" + (is_hashable ? ": not supported" : ""));
}

bool key_less(const Value& a, const Value& b) {
  const int rank = key_rank(a);
  if (const int other = key_rank(b); rank != other) return rank < other;
  if (rank == 0) {
    const int order = compare_numbers(a, b);
    if (order == 2) throw Failure("cannot use NaN as a key of a mapping");
    return order < 0;
  }
  return rank == 1 && a.text()->bytes < b.text()->bytes;
}

bool items_equal(const std::vector<Value>& a, const std::vector<Value>& b, Budget& budget) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!equal(a[i], b[i], budget)) return false;
  }
  return true;
}

bool dicts_equal(const Dict& a, const Dict& b, Budget& budget) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a.entries()) {
    const Value* const other = b.find(key);
    if (!other || !equal(value, *other, budget)) return false;
  }
  return true;
}

bool ranges_equal(const Range& a, const Range& b) {
  const std::size_t size = a.size();
  if (size != b.size()) return false;
  return size == 0 || (a.start == b.start && (size == 1 || a.step == b.step));
}

// Exact, although not every 64-bit integer is a double.
int compare_to_double(std::int64_t integer, double number) {
  if (std::isnan(number)) return 2;
  if (number >= 0x1p63) return -1;
  if (number < -0x1p63) return 1;
  const double floor = std::floor(number);
  const auto whole = static_cast<std::int64_t>(floor);
  if (integer != whole) return integer < whole ? -1 : 1;
  return number > floor ? -1 : 0;
}

template <class T>
int three_way(T a, T b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

// Compares UTF-8, whose order is that of the code points.
int compare_texts(const Text& a, const Text& b, Budget& budget) {
  budget.scan(std::min(a.bytes.size(), b.bytes.size()));
  return a.bytes.compare(b.bytes);
}

}  // namespace

Text::Text(std::string text) : bytes(std::move(text)), length(count_characters(bytes)) {}

bool Dict::KeyLess::operator()(const Value& a, const Value& b) const {
  return key_less(a, b);
}

const Value* Dict::find(const Value& key) const {
  const int rank = key_rank(key);
  if (index_.empty()) {
    for (const auto& [known, value] : entries_) {
      if (key_rank(known) == rank && !key_less(known, key) && !key_less(key, known)) return &value;
    }
    return nullptr;
  }
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

void Dict::set(Value key, Value value) {
  depth_ = std::max({depth_, key.depth() + 1, value.depth() + 1});
  if (depth_ > max_value_depth) fail_too_deep();
  if (const Value* const known = find(key)) {
    const_cast<Value&>(*known) = std::move(value);
    return;
  }
  entries_.emplace_back(std::move(key), std::move(value));
  if (entries_.size() == linear_search_up_to + 1) {
    for (std::size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].first, i);
  } else if (!index_.empty()) {
    index_.emplace(entries_.back().first, entries_.size() - 1);
  }
}

std::size_t Range::size() const {
  const __int128 distance = step > 0 ? __int128{stop} - start : __int128{start} - stop;
  const __int128 stride = step > 0 ? __int128{step} : -__int128{step};
  return distance <= 0 ? 0 : static_cast<std::size_t>((distance + stride - 1) / stride);
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
  if (const DictView* const value = view()) return value->dict->size() != 0;
  if (const Range* const value = range()) return value->size() != 0;
  return true;
}

std::string Value::kind_name() const {
  if (is_missing() || is_undefined()) return "an undefined value";
  if (is_none()) return "none";
  if (is_bool()) return "a boolean";
  if (get_if<std::int64_t>()) return "an integer";
  if (get_if<double>()) return "a float";
  if (text()) return "a string";
  if (const List* const value = list()) return value->is_tuple ? "a tuple" : "a list";
  if (dict()) return "a mapping";
  if (view()) return "a view of a mapping";
  if (range()) return "a range";
  if (name_space()) return "a namespace";
  if (iterator()) return "an iterator";
  if (object(Object::Kind::loop)) return "a loop";
  return "a function";
}

std::size_t Value::depth() const {
  if (const List* const value = list()) return value->depth;
  if (const Dict* const value = dict()) return value->depth();
  if (const DictView* const value = view()) return value->dict->depth() + 1;
  if (const Method* const value = method()) return value->self.depth() + 1;
  return 0;
}

const void* Value::identity() const {
  return std::visit(
      [](const auto& data) -> const void* {
        if constexpr (requires { data.get(); }) return data.get();
        if constexpr (std::is_same_v<decltype(data), Object* const&>) return data;
        if constexpr (requires { data.message; }) return data.message.get();
        return nullptr;
      },
      data_);
}

namespace {

Value make_sequence(std::vector<Value> items, bool is_tuple, Budget& budget) {
  List list{.items = std::move(items), .is_tuple = is_tuple};
  for (const Value& item : list.items) list.depth = std::max(list.depth, item.depth() + 1);
  if (list.depth > max_value_depth) fail_too_deep();
  budget.make(sizeof(List) + list.items.size() * sizeof(Value));
  return std::make_shared<const List>(std::move(list));
}

}  // namespace

Value make_list(std::vector<Value> items, Budget& budget) {
  return make_sequence(std::move(items), false, budget);
}
Value make_tuple(std::vector<Value> items, Budget& budget) {
  return make_sequence(std::move(items), true, budget);
}

Value make_text(std::string text, Budget& budget) {
  budget.make(sizeof(Text) + text.size());
  return std::make_shared<const Text>(std::move(text));
}

Value make_dict(Dict dict, Budget& budget) {
  constexpr std::size_t index_node = 80;  // of the std::map
  budget.make(sizeof(Dict) + dict.size() * (sizeof(Dict::Entry) + index_node));
  return std::make_shared<const Dict>(std::move(dict));
}

Value make_undefined(std::string message) {
  return Undefined{std::make_shared<const std::string>(std::move(message))};
}

int compare_numbers(const Value& a, const Value& b) {
  const auto* const a_double = a.get_if<double>();
  const auto* const b_double = b.get_if<double>();
  if (a_double && b_double) {
    return std::isnan(*a_double) || std::isnan(*b_double) ? 2 : three_way(*a_double, *b_double);
  }
  if (b_double) return compare_to_double(*a.integer(), *b_double);
  if (!a_double) return three_way(*a.integer(), *b.integer());
  const int order = compare_to_double(*b.integer(), *a_double);
  return order == 2 ? 2 : -order;
}

bool equal(const Value& a, const Value& b, Budget& budget) {
  budget.spend(1);
  const Budget::Level level(budget);
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.text() && b.text()) return compare_texts(*a.text(), *b.text(), budget) == 0;
  const void* const identity = a.identity();
  if (identity && identity == b.identity()) return true;
  if (a.list() && b.list()) {
    return a.list()->is_tuple == b.list()->is_tuple && items_equal(a.list()->items, b.list()->items, budget);
  }
  if (a.dict() && b.dict()) return dicts_equal(*a.dict(), *b.dict(), budget);
  if (a.range() && b.range()) return ranges_equal(*a.range(), *b.range());
  if (a.view() && b.view()) throw Failure("comparing views of mappings is not supported");
  if (a.method() && b.method()) {
    return a.method()->name == b.method()->name && a.method()->self.identity() == b.method()->self.identity();
  }
  return false;
}

bool less(const Value& a, const Value& b, bool or_equal, Budget& budget) {
  budget.spend(1);
  const auto holds = [or_equal](int order) { return order < 0 || (or_equal && order == 0); };
  if (a.is_number() && b.is_number()) return holds(compare_numbers(a, b));
  if (a.text() && b.text()) return holds(compare_texts(*a.text(), *b.text(), budget));
  if (a.list() && b.list() && a.list()->is_tuple == b.list()->is_tuple) {
    const std::vector<Value>& x = a.list()->items;
    const std::vector<Value>& y = b.list()->items;
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equal(x[i], y[i], budget)) return less(x[i], y[i], or_equal, budget);
    }
    return holds(three_way(x.size(), y.size()));
  }
  for (const Value* const side : {&a, &b}) {
    if (const auto* const undefined = side->get_if<Undefined>()) throw Failure(*undefined->message);
  }
  throw Failure("cannot order " + a.kind_name() + " and " + b.kind_name());
}

void require_defined(const Value& value) {
  if (const auto* const undefined = value.get_if<Undefined>()) throw Failure(*undefined->message);
}

void reject_markup(const Text& text) {
  if (text.markup) throw Failure("working with escaped text is not supported");
}

std::int64_t integer_argument(const Value& value, std::string_view what) {
  require_defined(value);
  const auto number = value.integer();
  if (!number) throw Failure(std::string(what) + " is " + value.kind_name() + ", expected an integer");
  return *number;
}

const Text& string_argument(const Value& value, std::string_view what) {
  require_defined(value);
  if (!value.text()) throw Failure(std::string(what) + " is " + value.kind_name() + ", expected a string");
  reject_markup(*value.text());
  return *value.text();
}

Value run_builtin(Context& context, const Builtin& builtin, const Value& subject, const Arguments& arguments) {
  context.budget.spend(1);
  if (builtin.run_any) return builtin.run_any(context, subject, arguments);
  const std::vector<std::string_view>& parameters = builtin.parameters;
  const auto fail = [&](const std::string& what) { throw Failure(quote(builtin.name) + " " + what); };
  if (arguments.positional.size() > parameters.size()) {
    fail("takes " + std::to_string(parameters.size()) + " arguments at most; found " +
         std::to_string(arguments.positional.size()));
  }
  std::vector<Value> values = arguments.positional;
  values.resize(parameters.size());
  for (const auto& [name, value] : arguments.keywords) {
    const auto parameter = std::find(parameters.begin(), parameters.end(), name);
    const auto index = static_cast<std::size_t>(parameter - parameters.begin());
    if (parameter == parameters.end()) fail("takes no argument " + quote(name));
    if (!values[index].is_missing()) fail("is given a repeated " + quote(name));
    values[index] = value;
  }
  for (std::size_t i = 0; i < builtin.required; ++i) {
    if (values[i].is_missing()) fail("requires an argument for " + quote(parameters[i]));
  }
  return builtin.run(context, subject, Bound(std::move(values)));
}

}  // namespace minimind::jinja
