#include "runtime/jinja/operations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/jinja/show.h"
#include "runtime/jinja/text.h"
#include "weights/base/text.h"

namespace minimind::jinja {

Value Namespace::attribute(std::string_view name) {
  const Value* const found = attributes_.find(std::string(name));
  return found ? *found : Object::attribute(name);
}

void Namespace::set(const std::string& name, const Value& value, Budget& budget) {
  if (name.starts_with("_")) throw Failure("a namespace cannot have " + quote(name) + ", which starts with _");
  budget.read(name.size());  // it becomes a value
  attributes_.set(name, value, budget);
}

// Iteration.

std::vector<Value> items_of(Context& context, const Value& value) {
  Iterator* const iterator = value.object<Iterator>();
  const std::size_t size = iterator ? iterator->items.size() : size_of(value).value_or(0);
  context.budget.spend(size);
  context.budget.make(sizeof(Value), size);
  if (const List* const list = value.list()) return list->items;
  std::vector<Value> items;
  if (iterator) {
    std::swap(items, iterator->items);
  } else if (const Text* const text = value.text()) {
    for (const std::string_view character : characters_of(text->bytes)) {
      items.push_back(make_text(text->part(character), context.budget));
    }
  } else if (const Dict* const dict = value.dict()) {
    for (const auto& [key, entry] : dict->entries()) items.push_back(key);
  } else if (!value.is_undefined()) {
    throw Failure("cannot go through the items of " + value.kind_name());
  }
  return items;
}

void put_back(const Value& value, const std::vector<Value>& items, std::size_t begin) {
  Iterator* const iterator = value.object<Iterator>();
  if (iterator) iterator->items.assign(items.begin() + static_cast<std::ptrdiff_t>(begin), items.end());
}

std::optional<std::size_t> size_of(const Value& value) {
  if (const Text* const text = value.text()) return text->length;
  if (const List* const list = value.list()) return list->items.size();
  if (const Dict* const dict = value.dict()) return dict->size();
  if (value.is_undefined()) return 0;
  return std::nullopt;
}

// Operators.

namespace {

[[noreturn]] void overflow() {
  throw Failure("the result does not fit in an integer of 64 bits");
}

[[noreturn]] void fail_division() {
  throw Failure("cannot divide by zero");
}

// Round towards minus infinity, as Python's // and % do.
std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  if (a == std::numeric_limits<std::int64_t>::min() && b == -1) overflow();
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

std::int64_t floor_remainder(std::int64_t a, std::int64_t b) {
  const std::int64_t remainder = b == -1 ? 0 : a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

// Of numbers one of which is a float, and the quotient of integers.
double float_operation(Operator op, double a, double b) {
  if (op == Operator::add) return a + b;
  if (op == Operator::subtract) return a - b;
  if (op == Operator::multiply) return a * b;
  if (b == 0) fail_division();
  if (op == Operator::divide) return a / b;
  // As Python has it: the remainder has the sign of b, and the quotient is the whole number nearest to (a - it) / b.
  double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder == 0) {
    remainder = std::copysign(0.0, b);
  } else if ((b < 0) != (remainder < 0)) {
    remainder += b;
    quotient -= 1;
  }
  if (op == Operator::modulo) return remainder;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

// Python divides integers of any size exactly before it rounds.
double quotient_of(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  const auto fits = [](std::int64_t number) { return number >= -most && number <= most; };
  if (!fits(a) || !fits(b)) throw Failure("the division of integers beyond 2^53 is not supported");
  return float_operation(Operator::divide, static_cast<double>(a), static_cast<double>(b));
}

std::int64_t integer_operation(Operator op, std::int64_t a, std::int64_t b) {
  if (op == Operator::floor_divide || op == Operator::modulo) {
    if (b == 0) fail_division();
    return op == Operator::modulo ? floor_remainder(a, b) : floor_quotient(a, b);
  }
  std::int64_t result = 0;
  const bool is_too_large = op == Operator::add        ? __builtin_add_overflow(a, b, &result)
                            : op == Operator::subtract ? __builtin_sub_overflow(a, b, &result)
                                                       : __builtin_mul_overflow(a, b, &result);
  if (is_too_large) overflow();
  return result;
}

Value repeated(Context& context, const MarkedText& text, std::int64_t wanted) {
  const std::size_t size = text.bytes.size();
  std::size_t times = size == 0 ? 0 : static_cast<std::size_t>(std::max<std::int64_t>(wanted, 0));
  context.budget.make(size + text.marks.ranges().size() * sizeof(TextMarks::Range), times);
  MarkedText result, block = text;  // 1, 2, 4 ... times the text
  result.bytes.reserve(size * times);
  for (; times > 0; times /= 2) {
    if (times % 2 == 1) result.append(block);
    if (times > 1) block.append(MarkedText(block));
  }
  return make_text(std::move(result), context.budget);
}

// If one text is markup, the other is escaped, as in markupsafe.
Value joined_texts(Context& context, const Text& left, const Text& right) {
  constexpr std::size_t max_escaped = 5;  // bytes instead of one
  const bool is_markup = left.markup || right.markup;
  context.budget.make((is_markup ? max_escaped : 1) * (left.bytes.size() + right.bytes.size()));
  if (is_markup) context.budget.read(left.bytes.size() + right.bytes.size());
  MarkedText joined;
  for (const Text* const part : {&left, &right}) {
    const MarkedText& own = *part;
    joined.append(is_markup && !part->markup ? escaped_html(own) : own);
  }
  Text result(std::move(joined));
  result.markup = is_markup;
  return std::make_shared<const Text>(std::move(result));
}

Value joined_lists(Context& context, const List& left, const List& right) {
  context.budget.make((left.items.size() + right.items.size()) * sizeof(Value));
  std::vector<Value> items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return make_list(std::move(items), context.budget, left.kind);
}

Value arithmetic(Context& context, Operator op, const Value& left, const Value& right) {
  if (op == Operator::modulo && left.text()) return formatted(left, right, context.budget);
  require_defined(left);
  require_defined(right);
  if (left.integer() && right.integer()) {
    if (op == Operator::divide) return quotient_of(*left.integer(), *right.integer());
    return integer_operation(op, *left.integer(), *right.integer());
  }
  if (left.is_number() && right.is_number()) return float_operation(op, float_of(left), float_of(right));
  if (op == Operator::add && left.text() && right.text()) return joined_texts(context, *left.text(), *right.text());
  if (op == Operator::add && left.list() && right.list() && left.list()->kind == right.list()->kind &&
      (left.list()->kind == List::Kind::list || left.list()->kind == List::Kind::tuple)) {
    return joined_lists(context, *left.list(), *right.list());
  }
  if (op == Operator::multiply && (left.text() || right.text()) && (left.integer() || right.integer())) {
    const Value& text = left.text() ? left : right;
    return repeated(context, marked_argument(text, "what to repeat"), *(left.text() ? right : left).integer());
  }
  const char* const word = op == Operator::add        ? "add "
                           : op == Operator::subtract ? "subtract "
                           : op == Operator::multiply ? "multiply "
                                                      : "divide ";
  throw Failure("cannot " + std::string(word) + left.kind_name() + " and " + right.kind_name());
}

// `item in container`.
bool contains(Context& context, const Value& container, const Value& item) {
  if (const Text* const text = container.text()) {
    require_defined(item);
    if (!item.text()) throw Failure("cannot look for " + item.kind_name() + " in a string");
    context.budget.search(text->bytes.size(), item.text()->bytes.size());
    return find_first(text->bytes, item.text()->bytes).has_value();
  }
  if (const Dict* const dict = container.dict()) return dict->find(item, context.budget) != nullptr;
  const std::vector<Value> items = items_of(context, container);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!equal(items[i], item, context.budget)) continue;
    put_back(container, items, i + 1);
    return true;
  }
  return false;
}

}  // namespace

Value negated(const Value& value) {
  require_defined(value);
  if (const auto* const number = value.get_if<double>()) return -*number;
  return integer_operation(Operator::subtract, 0, integer_argument(value, "the operand of -"));
}

Value binary_operation(Context& context, Operator op, const Value& left, const Value& right) {
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
    case Operator::not_in:
      return !contains(context, right, left);
    case Operator::concatenate: {
      MarkedText joined = shown(left, context.budget);
      joined.append(shown(right, context.budget));
      return make_text(std::move(joined), context.budget);
    }
    default:
      return arithmetic(context, op, left, right);
  }
}

}  // namespace minimind::jinja
