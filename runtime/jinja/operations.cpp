#include "runtime/jinja/operations.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/jinja/show.h"
#include "runtime/jinja/text.h"
#include "runtime/text/utf8.h"

namespace minimind::jinja {
namespace {

[[noreturn]] void overflow() {
  throw Failure("the result does not fit in an integer of 64 bits");
}

[[noreturn]] void reject(Operator op, const Value& left, const Value& right) {
  const auto word = [op] {
    switch (op) {
      case Operator::add:
        return "add";
      case Operator::subtract:
        return "subtract";
      case Operator::multiply:
        return "multiply";
      default:
        return "divide";
    }
  };
  throw Failure(std::string("cannot ") + word() + " " + left.kind_name() + " and " + right.kind_name());
}

double as_double(const Value& value) {
  const auto* const number = value.get_if<double>();
  return number ? *number : static_cast<double>(*value.integer());
}

// Round towards minus infinity, as Python's // and % do.
std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  if (a == std::numeric_limits<std::int64_t>::min() && b == -1) overflow();
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

std::int64_t floor_remainder(std::int64_t a, std::int64_t b) {
  if (b == -1) return 0;
  const std::int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double floor_remainder(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double floor_quotient(double a, double b) {
  const double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

Value integer_operation(Operator op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (op) {
    case Operator::add:
      if (__builtin_add_overflow(a, b, &result)) overflow();
      return result;
    case Operator::subtract:
      if (__builtin_sub_overflow(a, b, &result)) overflow();
      return result;
    case Operator::multiply:
      if (__builtin_mul_overflow(a, b, &result)) overflow();
      return result;
    default:
      break;
  }
  if (b == 0) throw Failure("cannot divide by zero");
  if (op == Operator::floor_divide) return floor_quotient(a, b);
  if (op == Operator::modulo) return floor_remainder(a, b);
  return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
}

Value float_operation(Operator op, double a, double b) {
  switch (op) {
    case Operator::add:
      return a + b;
    case Operator::subtract:
      return a - b;
    case Operator::multiply:
      return a * b;
    default:
      break;
  }
  if (b == 0) throw Failure("cannot divide by zero");
  if (op == Operator::floor_divide) return floor_quotient(a, b);
  if (op == Operator::modulo) return floor_remainder(a, b);
  return a / b;
}

Value repeated(Context& context, const Value& sequence, std::int64_t wanted) {
  const auto times = static_cast<std::size_t>(std::max<std::int64_t>(wanted, 0));
  const Text* const text = sequence.text();
  const std::size_t size = text ? text->bytes.size() : sequence.list()->items.size();
  if (size > 0 && times > (std::size_t{1} << 40) / size) context.budget.make(std::size_t{1} << 62);
  if (text) {
    reject_markup(*text);
    context.budget.make(size * times);
    std::string result;
    result.reserve(size * times);
    for (std::size_t i = 0; i < (size > 0 ? times : 0); ++i) result += text->bytes;
    return make_text(std::move(result), context.budget);
  }
  context.budget.make(size * times * sizeof(Value));
  std::vector<Value> items;
  items.reserve(size * times);
  for (std::size_t i = 0; i < (size > 0 ? times : 0); ++i) {
    items.insert(items.end(), sequence.list()->items.begin(), sequence.list()->items.end());
  }
  return sequence.list()->is_tuple ? make_tuple(std::move(items), context.budget)
                                   : make_list(std::move(items), context.budget);
}

// If one text is markup, the other is escaped, as in markupsafe.
Value joined_texts(Context& context, const Text& left, const Text& right) {
  const std::size_t size = left.bytes.size() + right.bytes.size();
  if (!left.markup && !right.markup) {
    context.budget.make(size);
    return make_text(left.bytes + right.bytes, context.budget);
  }
  context.budget.make(6 * size);  // the largest size after escaping
  const auto escaped = [](const Text& text) { return text.markup ? text.bytes : escaped_html(text.bytes); };
  Text result(escaped(left) + escaped(right));
  result.markup = true;
  return std::make_shared<const Text>(std::move(result));
}

Value joined(Context& context, const Value& left, const Value& right) {
  if (left.text() && right.text()) return joined_texts(context, *left.text(), *right.text());
  const List* const a = left.list();
  const List* const b = right.list();
  if (!a || !b || a->is_tuple != b->is_tuple) reject(Operator::add, left, right);
  context.budget.make((a->items.size() + b->items.size()) * sizeof(Value));
  std::vector<Value> items = a->items;
  items.insert(items.end(), b->items.begin(), b->items.end());
  return a->is_tuple ? make_tuple(std::move(items), context.budget) : make_list(std::move(items), context.budget);
}

bool range_contains(const Range& range, const Value& item) {
  if (!item.is_number() || range.size() == 0) return false;
  auto number = item.integer();
  if (const auto* const fraction = item.get_if<double>()) {
    if (*fraction != std::floor(*fraction) || std::fabs(*fraction) >= 0x1p62) return false;
    number = static_cast<std::int64_t>(*fraction);
  }
  const __int128 distance = __int128{*number} - range.start;
  return distance % range.step == 0 && distance / range.step >= 0 &&
         distance / range.step < static_cast<__int128>(range.size());
}

Value entry_of(const DictView& view, std::size_t index, Budget& budget) {
  const auto& [key, value] = view.dict->entries()[index];
  if (view.part == DictView::Part::keys) return key;
  if (view.part == DictView::Part::values) return value;
  return make_tuple({key, value}, budget);
}

Items characters(Context& context, const Value& value) {
  return [&context, value, at = std::size_t{0}]() mutable -> std::optional<Value> {
    const std::string_view rest = std::string_view(value.text()->bytes).substr(at);
    if (rest.empty()) return std::nullopt;
    const std::size_t size = first_utf8(rest).size;
    at += size;
    return make_text(std::string(rest.substr(0, size)), context.budget);
  };
}

// Iterates items numbered from 0 to `size`, which `at` returns.
template <class At>
Items numbered(Context& context, std::size_t size, At at) {
  return [&context, size, at, index = std::size_t{0}]() mutable -> std::optional<Value> {
    if (index == size) return std::nullopt;
    context.budget.spend(1);
    return at(index++);
  };
}

}  // namespace

Value binary_operation(Context& context, Operator op, const Value& left, const Value& right) {
  if (op == Operator::modulo && left.text()) {
    reject_markup(*left.text());
    return formatted(context, *left.text(), right);
  }
  require_defined(left);
  require_defined(right);
  if (left.is_number() && right.is_number()) {
    if (!left.get_if<double>() && !right.get_if<double>()) {
      return integer_operation(op, *left.integer(), *right.integer());
    }
    return float_operation(op, as_double(left), as_double(right));
  }
  if (op == Operator::add) return joined(context, left, right);
  if (op == Operator::multiply && (left.text() || left.list()) && right.integer()) {
    return repeated(context, left, *right.integer());
  }
  if (op == Operator::multiply && (right.text() || right.list()) && left.integer()) {
    return repeated(context, right, *left.integer());
  }
  reject(op, left, right);
}

Value negated(const Value& value) {
  require_defined(value);
  if (const auto* const number = value.get_if<double>()) return -*number;
  const auto integer = value.integer();
  if (!integer) throw Failure("cannot negate " + value.kind_name());
  std::int64_t result = 0;
  if (__builtin_sub_overflow(std::int64_t{0}, *integer, &result)) overflow();
  return result;
}

bool compare(Context& context, Operator op, const Value& left, const Value& right) {
  switch (op) {
    case Operator::equal:
      return equal(left, right, context.budget);
    case Operator::not_equal:
      return !equal(left, right, context.budget);
    case Operator::less:
      return less(left, right, false, context.budget);
    case Operator::less_equal:
      return less(left, right, true, context.budget);
    case Operator::greater:
      return less(right, left, false, context.budget);
    case Operator::greater_equal:
      return less(right, left, true, context.budget);
    case Operator::in:
      return contains(context, right, left);
    default:
      return !contains(context, right, left);
  }
}

const Value* find_entry(Context& context, const Dict& dict, const Value& key) {
  constexpr std::size_t comparisons = 8;  // of a search
  if (key.text()) context.budget.scan(comparisons * key.text()->bytes.size());
  return dict.find(key);
}

bool contains(Context& context, const Value& container, const Value& item) {
  if (const Text* const text = container.text()) {
    require_defined(item);
    if (!item.text()) throw Failure("cannot look for " + item.kind_name() + " in a string");
    context.budget.scan(text->bytes.size());
    return find_first(text->bytes, item.text()->bytes).has_value();
  }
  if (const Dict* const dict = container.dict()) return find_entry(context, *dict, item) != nullptr;
  if (const DictView* const view = container.view(); view && view->part == DictView::Part::keys) {
    return find_entry(context, *view->dict, item) != nullptr;
  }
  if (const Range* const range = container.range()) return range_contains(*range, item);
  const Items items = items_of(context, container);
  while (const auto candidate = items()) {
    if (equal(*candidate, item, context.budget)) return true;
  }
  return false;
}

std::optional<std::size_t> size_of(const Value& value) {
  if (const Text* const text = value.text()) return text->length;
  if (const List* const list = value.list()) return list->items.size();
  if (const Dict* const dict = value.dict()) return dict->size();
  if (const DictView* const view = value.view()) return view->dict->size();
  if (const Range* const range = value.range()) return range->size();
  if (value.is_undefined()) return 0;
  return std::nullopt;
}

std::string text_argument(Context& context, const Value& value) {
  if (const Text* const text = value.text()) reject_markup(*text);
  return shown(value, context.budget);
}

bool is_iterable(const Value& value) {
  return size_of(value).has_value() || value.iterator() || value.object(Object::Kind::loop);
}

Items items_of(Context& context, const Value& value) {
  if (value.text()) return characters(context, value);
  if (const List* const list = value.list()) {
    return numbered(context, list->items.size(), [value](std::size_t i) { return value.list()->items[i]; });
  }
  if (const Dict* const dict = value.dict()) {
    return numbered(context, dict->size(), [value](std::size_t i) { return value.dict()->entries()[i].first; });
  }
  if (const DictView* const view = value.view()) {
    return numbered(context, view->dict->size(),
                    [&context, value](std::size_t i) { return entry_of(*value.view(), i, context.budget); });
  }
  if (const Range* const range = value.range()) {
    return numbered(context, range->size(), [value](std::size_t i) { return Value(value.range()->at(i)); });
  }
  if (Iterator* const iterator = value.iterator()) {
    return [&context, iterator]() {
      context.budget.spend(1);
      const Budget::Level level(context.budget);
      return iterator->next();
    };
  }
  if (value.is_undefined()) return []() -> std::optional<Value> { return std::nullopt; };
  throw Failure("cannot go through the items of " + value.kind_name());
}

std::vector<Value> all_items_of(Context& context, const Value& value) {
  std::vector<Value> result;
  const Items items = items_of(context, value);
  while (auto item = items()) {
    context.budget.make(sizeof(Value));
    result.push_back(std::move(*item));
  }
  return result;
}

}  // namespace minimind::jinja
