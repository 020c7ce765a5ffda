#include "runtime/jinja/access.h"

#include <algorithm>
#include <charconv>
#include <memory>

#include "runtime/jinja/methods.h"
#include "runtime/jinja/operations.h"
#include "runtime/jinja/show.h"
#include "runtime/jinja/text.h"
#include "runtime/text/utf8.h"
#include "weights/io/quote.h"

namespace minimind::jinja {

// Access to the parts of values: attributes, items and slices.

namespace {

Value has_no_attribute(const Value& subject, std::string_view name) {
  return make_undefined(subject.kind_name() + " has no attribute " + quote(name));
}

// The sandbox hides some attributes as if they were undefined.
bool is_hidden(std::string_view name) {
  return name.starts_with("__") && name.ends_with("__");
}

// Returns the attribute, without searching the items; std::nullopt if there is none.
std::optional<Value> own_attribute(Context& context, const Value& subject, std::string_view name) {
  if (const Namespace* const name_space = subject.name_space()) {
    const Value* const found = name.starts_with("_") ? nullptr : name_space->attributes.find(std::string(name));
    return found ? std::optional(*found) : std::nullopt;
  }
  const FoundMethod method = find_method(subject, name);
  if (method.exists) {
    if (!method.is_safe) {
      return make_undefined("access to " + quote(name) + " of " + subject.kind_name() + " is unsafe");
    }
    return Value(std::make_shared<const Method>(Method{.self = subject, .name = std::string(name)}));
  }
  if (Object* const loop = subject.object(Object::Kind::loop)) {
    Value value = static_cast<Loop*>(loop)->attribute(context, name);
    return value.is_undefined() && name != "previtem" && name != "nextitem" ? std::nullopt : std::optional(value);
  }
  if (subject.object(Object::Kind::macro) || subject.object(Object::Kind::function) || subject.method()) {
    throw Failure("attributes of functions are not supported");
  }
  return std::nullopt;
}

std::optional<std::size_t> index_in(const Value& key, std::size_t size) {
  const auto index = key.integer();
  if (!index) return std::nullopt;
  const auto count = static_cast<std::int64_t>(size);
  const std::int64_t from_start = *index < 0 ? *index + count : *index;
  if (from_start < 0 || from_start >= count) return std::nullopt;
  return static_cast<std::size_t>(from_start);
}

Value character_at(Context& context, const Text& text, std::size_t index) {
  if (text.markup) throw Failure("access to parts of escaped text is not supported");
  if (text.is_ascii()) return make_text(std::string(1, text.bytes[index]), context.budget);
  context.budget.scan(text.bytes.size());
  const std::size_t at = byte_of_character(text.bytes, index);
  const std::string_view rest = std::string_view(text.bytes).substr(at);
  return make_text(std::string(rest.substr(0, first_utf8(rest).size)), context.budget);
}

// Returns the item, without searching the attributes; std::nullopt if there is none.
std::optional<Value> own_item(Context& context, const Value& subject, const Value& key) {
  if (const Dict* const dict = subject.dict()) {
    if (key.dict() || (key.list() && !key.list()->is_tuple)) return std::nullopt;
    const Value* const found = find_entry(context, *dict, key);
    return found ? std::optional(*found) : std::nullopt;
  }
  const bool is_sequence = subject.text() || subject.list() || subject.range();
  const auto index = is_sequence ? index_in(key, *size_of(subject)) : std::nullopt;
  if (!index) return std::nullopt;
  if (const List* const list = subject.list()) return list->items[*index];
  if (const Range* const range = subject.range()) return range->at(*index);
  return character_at(context, *subject.text(), *index);
}

std::int64_t clamp_bound(const Value* bound, std::int64_t if_absent, std::int64_t size, bool backwards) {
  if (!bound || bound->is_none()) return if_absent;
  std::int64_t at = integer_argument(*bound, "the bound of a slice");
  if (at < 0) at = std::max(at + size, std::int64_t{backwards ? -1 : 0});
  return std::min(at, backwards ? size - 1 : size);
}

struct SliceBounds {
  std::int64_t start, stop, step;
  std::size_t count;
  std::int64_t at(std::size_t i) const { return start + static_cast<std::int64_t>(i) * step; }
};

SliceBounds bounds_of(std::size_t size, const Value* start, const Value* stop, const Value* step) {
  const auto count = static_cast<std::int64_t>(size);
  const std::int64_t stride = step && !step->is_none() ? integer_argument(*step, "the step of a slice") : 1;
  if (stride == 0) throw Failure("the step of a slice is zero");
  const bool backwards = stride < 0;
  const std::int64_t from = clamp_bound(start, backwards ? count - 1 : 0, count, backwards);
  const std::int64_t to = clamp_bound(stop, backwards ? -1 : count, count, backwards);
  return {.start = from, .stop = to, .step = stride, .count = Range{from, to, stride}.size()};
}

Value slice_of_text(Context& context, const Text& text, const SliceBounds& bounds) {
  if (text.markup) throw Failure("access to parts of escaped text is not supported");
  context.budget.scan(text.bytes.size());
  if (bounds.count == 0) return make_text({}, context.budget);
  if (bounds.step == 1) {
    const auto first = static_cast<std::size_t>(bounds.start);
    const std::size_t begin = text.is_ascii() ? first : byte_of_character(text.bytes, first);
    const std::string_view rest = std::string_view(text.bytes).substr(begin);
    const std::size_t size = text.is_ascii() ? bounds.count : byte_of_character(rest, bounds.count);
    return make_text(std::string(rest.substr(0, size)), context.budget);
  }
  context.budget.make(text.bytes.size() * sizeof(std::string_view));
  const std::vector<std::string_view> all = characters_of(text.bytes);
  std::string result;
  for (std::size_t i = 0; i < bounds.count; ++i) result += all[static_cast<std::size_t>(bounds.at(i))];
  return make_text(std::move(result), context.budget);
}

}  // namespace

Value attribute_of(Context& context, const Value& subject, std::string_view name) {
  require_defined(subject);
  if (is_hidden(name)) throw Failure("attributes of Python such as " + quote(name) + " are not supported");
  if (auto attribute = own_attribute(context, subject, name)) return std::move(*attribute);
  if (subject.dict()) {
    if (auto item = own_item(context, subject, std::string(name))) return std::move(*item);
  }
  return has_no_attribute(subject, name);
}

Value item_of(Context& context, const Value& subject, const Value& key) {
  require_defined(subject);
  if (auto item = own_item(context, subject, key)) return std::move(*item);
  const Text* const name = key.text();
  if (!name) {
    if (key.is_number()) return make_undefined(subject.kind_name() + " has no element " + shown(key, context.budget));
    return make_undefined(subject.kind_name() + " has no element of that kind");
  }
  if (is_hidden(name->bytes)) {
    throw Failure("attributes of Python such as " + quote(name->bytes) + " are not supported");
  }
  if (auto attribute = own_attribute(context, subject, name->bytes)) return std::move(*attribute);
  return has_no_attribute(subject, name->bytes);
}

Value slice_of(Context& context, const Value& subject, const Value* start, const Value* stop, const Value* step) {
  require_defined(subject);
  const bool is_sequence = subject.text() || subject.list() || subject.range();
  if (!is_sequence) throw Failure("cannot take a slice of " + subject.kind_name());
  const SliceBounds bounds = bounds_of(*size_of(subject), start, stop, step);
  if (const Text* const text = subject.text()) return slice_of_text(context, *text, bounds);
  if (const Range* const range = subject.range()) {
    std::int64_t stride = 0;
    if (__builtin_mul_overflow(range->step, bounds.step, &stride)) throw Failure("the step of the slice is too large");
    return std::make_shared<const Range>(
        Range{range->start + bounds.start * range->step, range->start + bounds.stop * range->step, stride});
  }
  context.budget.make(bounds.count * sizeof(Value));
  std::vector<Value> items;
  items.reserve(bounds.count);
  for (std::size_t i = 0; i < bounds.count; ++i) {
    items.push_back(subject.list()->items[static_cast<std::size_t>(bounds.at(i))]);
  }
  return subject.list()->is_tuple ? make_tuple(std::move(items), context.budget)
                                  : make_list(std::move(items), context.budget);
}

std::optional<Value> Loop::advance() {
  std::optional<Value> item = next_ ? std::exchange(next_, std::nullopt) : items_();
  if (!item) return std::nullopt;
  ++index0;
  previous_ = std::exchange(current_, item);
  return item;
}

const std::optional<Value>& Loop::peek() {
  if (!next_) next_ = items_();
  return next_;
}

std::int64_t Loop::length(Context& context) {
  if (!size_) {
    auto rest = std::make_shared<std::vector<Value>>();
    while (auto item = items_()) {
      context.budget.make(sizeof(Value));
      rest->push_back(std::move(*item));
    }
    size_ = rest->size() + static_cast<std::size_t>(index0 + 1) + (next_ ? 1 : 0);
    items_ = [rest, at = std::size_t{0}]() mutable -> std::optional<Value> {
      return at < rest->size() ? std::optional((*rest)[at++]) : std::nullopt;
    };
  }
  return static_cast<std::int64_t>(*size_);
}

Value Loop::attribute(Context& context, std::string_view name) {
  if (name == "index0") return index0;
  if (name == "index") return index0 + 1;
  if (name == "first") return index0 == 0;
  if (name == "last") return !peek();
  if (name == "length") return length(context);
  if (name == "revindex") return length(context) - index0;
  if (name == "revindex0") return length(context) - index0 - 1;
  if (name == "previtem") return index0 > 0 ? *previous_ : make_undefined("there is no previous item");
  if (name == "nextitem") return peek() ? *peek() : make_undefined("there is no next item");
  if (name == "depth" || name == "depth0" || name == "cycle" || name == "changed") {
    throw Failure("loop." + std::string(name) + " is not supported");
  }
  return make_undefined("a loop has no attribute '" + std::string(name) + "'");
}

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
      throw Failure("the index " + quote(part) + " is too large");
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

}  // namespace minimind::jinja
