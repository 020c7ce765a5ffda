#include "runtime/jinja/access.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/jinja/builtins.h"
#include "runtime/jinja/text.h"
#include "runtime/text/utf8.h"
#include "weights/base/quote.h"

namespace minimind::jinja {
namespace {

Value has_no_attribute(Context& context, const Value& subject, std::string_view name) {
  return make_undefined(subject.kind_name() + " has no attribute " + quote(name), context.budget);
}

// Returns the attribute, without searching the items; std::nullopt if there is none.
std::optional<Value> own_attribute(Context& context, const Value& subject, std::string_view name) {
  constexpr std::size_t comparisons = 16;  // with the attributes of a namespace
  context.budget.scan(comparisons * name.size());
  if (name.starts_with("__") && name.ends_with("__")) {
    throw Failure("attributes of Python such as " + quote(name) + " are not supported");
  }
  if (Object* const object = subject.object()) return object->attribute(name);
  if (subject.method()) throw Failure("attributes of functions are not supported");
  const Builtin* const method = find_method(subject, name);
  if (!method) return std::nullopt;
  context.budget.make(sizeof(Method));
  return Value(std::make_shared<const Method>(Method{.self = subject, .builtin = method}));
}

std::optional<std::size_t> index_in(const Value& key, std::size_t size) {
  const auto index = key.integer();
  if (!index) return std::nullopt;
  const auto count = static_cast<std::int64_t>(size);
  const std::int64_t from_start = *index < 0 ? *index + count : *index;
  if (from_start < 0 || from_start >= count) return std::nullopt;
  return static_cast<std::size_t>(from_start);
}

// Returns whether items have an index.
bool is_sequence(const Value& value) {
  return value.text() || (value.list() && value.list()->is_sequence());
}

// Returns a text whose parts are accessed.
const MarkedText& divisible(const Value& text) {
  return marked_argument(text, "what a part is taken of");
}

// Returns the item, without searching the attributes; std::nullopt if there is none.
std::optional<Value> own_item(Context& context, const Value& subject, const Value& key) {
  if (const Dict* const dict = subject.dict()) {
    if (key.dict() || key.list()) return std::nullopt;
    const Value* const found = dict->find(key, context.budget);
    return found ? std::optional(*found) : std::nullopt;
  }
  const auto index = is_sequence(subject) ? index_in(key, *size_of(subject)) : std::nullopt;
  if (!index) return std::nullopt;
  if (const List* const list = subject.list()) return list->items[*index];
  const MarkedText& text = divisible(subject);
  const std::string_view bytes = text.bytes;
  if (subject.text()->is_ascii()) return make_text(text.part(bytes.substr(*index, 1)), context.budget);
  context.budget.scan(bytes.size());
  const std::string_view rest = bytes.substr(byte_of_character(bytes, *index));
  return make_text(text.part(rest.substr(0, first_utf8(rest).size)), context.budget);
}

std::int64_t clamp_bound(const Value* bound, std::int64_t if_absent, std::int64_t size, bool backwards) {
  if (!bound || bound->is_none()) return if_absent;
  std::int64_t at = integer_argument(*bound, "the bound of a slice");
  if (at < 0) at = std::max(at + size, std::int64_t{backwards ? -1 : 0});
  return std::min(at, backwards ? size - 1 : size);
}

// The part of a sequence that a slice selects.
struct Part {
  std::size_t begin, count;
  bool reversed;
};

Part part_of(std::size_t size, const Value* start, const Value* stop, const Value* step) {
  const auto length = static_cast<std::int64_t>(size);
  const std::int64_t stride = step && !step->is_none() ? integer_argument(*step, "the step of a slice") : 1;
  if (stride != 1 && stride != -1) throw Failure("the step of a slice is not 1 or -1: not supported");
  const bool reversed = stride < 0;
  const std::int64_t from = clamp_bound(start, reversed ? length - 1 : 0, length, reversed);
  const std::int64_t to = clamp_bound(stop, reversed ? -1 : length, length, reversed);
  const std::int64_t count = std::max<std::int64_t>((to - from) * stride, 0);
  return {.begin = static_cast<std::size_t>(reversed ? to + 1 : from),
          .count = static_cast<std::size_t>(count),
          .reversed = reversed};
}

}  // namespace

Value attribute_of(Context& context, const Value& subject, std::string_view name) {
  require_defined(subject);
  if (auto attribute = own_attribute(context, subject, name)) return std::move(*attribute);
  if (subject.dict()) {
    if (auto item = own_item(context, subject, std::string(name))) return std::move(*item);
  }
  return has_no_attribute(context, subject, name);
}

Value item_of(Context& context, const Value& subject, const Value& key) {
  require_defined(subject);
  if (auto item = own_item(context, subject, key)) return std::move(*item);
  const Text* const name = key.text();
  if (!name) {
    const std::string element = key.integer() ? "element " + std::to_string(*key.integer()) : "such element";
    return make_undefined(subject.kind_name() + " has no " + element, context.budget);
  }
  if (auto attribute = own_attribute(context, subject, name->bytes)) return std::move(*attribute);
  return has_no_attribute(context, subject, name->bytes);
}

Value slice_of(Context& context, const Value& subject, const Value* start, const Value* stop, const Value* step) {
  require_defined(subject);
  if (!is_sequence(subject)) throw Failure("cannot take a slice of " + subject.kind_name());
  const Part part = part_of(*size_of(subject), start, stop, step);
  if (subject.text()) {
    const MarkedText& whole = divisible(subject);
    std::string_view text = whole.bytes;
    context.budget.scan(text.size());
    text.remove_prefix(byte_of_character(text, part.begin));
    text = text.substr(0, byte_of_character(text, part.count));
    return make_text(part.reversed ? reversed(whole, text, context.budget) : whole.part(text), context.budget);
  }
  context.budget.make(part.count * sizeof(Value));
  const auto begin = subject.list()->items.begin() + static_cast<std::ptrdiff_t>(part.begin);
  std::vector<Value> items(begin, begin + static_cast<std::ptrdiff_t>(part.count));
  if (part.reversed) std::reverse(items.begin(), items.end());
  return make_list(std::move(items), context.budget, subject.list()->kind);
}

}  // namespace minimind::jinja
