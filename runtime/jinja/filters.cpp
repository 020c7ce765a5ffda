#include "runtime/jinja/filters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "runtime/jinja/access.h"
#include "runtime/jinja/operations.h"
#include "runtime/jinja/show.h"
#include "runtime/jinja/text.h"
#include "runtime/text/unicode.h"
#include "runtime/text/utf8.h"

namespace minimind::jinja {

// The filters that return text.

namespace {

template <std::string (*map)(std::string_view)>
Value mapped_shown(Context& context, const Value& subject, const Bound&) {
  const std::string text = text_argument(context, subject);
  context.budget.map_case(text.size());
  return make_text(map(text), context.budget);
}

Value trim(Context& context, const Value& subject, const Bound& arguments) {
  std::optional<std::string_view> set;
  if (arguments.get(0) && !arguments.at(0).is_none()) set = string_argument(arguments.at(0), "what to trim").bytes;
  const std::string text = text_argument(context, subject);
  return make_text(std::string(stripped(text, set, Ends::both, context.budget)), context.budget);
}

Value replace_in_shown(Context& context, const Value& subject, const Bound& arguments) {
  const bool limited = arguments.get(2) && !arguments.at(2).is_none();
  const std::int64_t limit = limited ? integer_argument(arguments.at(2), "the number of times") : -1;
  const std::string text = shown(subject, context.budget);
  const std::string old_text = shown(arguments.at(0), context.budget);
  const std::string new_text = shown(arguments.at(1), context.budget);
  return make_text(replaced(text, old_text, new_text, limit, context.budget), context.budget);
}

Value string(Context& context, const Value& subject, const Bound&) {
  if (subject.text()) return subject;
  return make_text(shown(subject, context.budget), context.budget);
}

Value markup(Context& context, std::string text) {
  context.budget.make(text.size());
  Text result(std::move(text));
  result.markup = true;
  return std::make_shared<const Text>(std::move(result));
}

Value safe(Context& context, const Value& subject, const Bound&) {
  return markup(context, shown(subject, context.budget));
}

std::string indentation(Context& context, const Value* width) {
  if (!width) return "    ";
  if (const Text* const text = width->text()) return text->bytes;
  const std::int64_t count = std::max<std::int64_t>(integer_argument(*width, "the width of an indentation"), 0);
  context.budget.make(static_cast<std::size_t>(count));
  return std::string(static_cast<std::size_t>(count), ' ');
}

Value indent(Context& context, const Value& subject, const Bound& arguments) {
  const std::string text = string_argument(subject, "what to indent").bytes + "\n";
  const std::string indention = indentation(context, arguments.get(0));
  const bool first = arguments.get(1) && arguments.at(1).truth();
  const bool blank = arguments.get(2) && arguments.at(2).truth();
  context.budget.make(text.size() * 2);
  std::string result = first ? indention : "";
  bool is_first = true;
  for (const std::string_view line : split_lines(text, false)) {
    context.budget.make(line.size() + indention.size() + 1);
    if (!is_first) result += '\n';
    if (!is_first && (blank || !line.empty())) result += indention;
    is_first = false;
    result += line;
  }
  return make_text(std::move(result), context.budget);
}

Value format(Context& context, const Value& subject, const Arguments& arguments) {
  const Text text(text_argument(context, subject));
  if (!arguments.keywords.empty()) throw Failure("a format with names is not supported");
  return formatted(context, text, make_tuple(arguments.positional, context.budget));
}

JsonStyle json_style(const Bound& arguments, Budget& budget) {
  JsonStyle style;
  style.ensure_ascii = arguments.get(0) && arguments.at(0).truth();
  if (const Value* const indent = arguments.get(1); indent && !indent->is_none()) {
    if (const Text* const text = indent->text()) {
      style.indent = text->bytes;
    } else {
      const std::int64_t width = std::max<std::int64_t>(integer_argument(*indent, "the indentation of JSON"), 0);
      budget.make(static_cast<std::size_t>(width));
      style.indent = std::string(static_cast<std::size_t>(width), ' ');
    }
    style.item_separator = ",";
  }
  if (const Value* const separators = arguments.get(2); separators && !separators->is_none()) {
    const List* const pair = separators->list();
    if (!pair || pair->items.size() != 2) throw Failure("the separators of JSON are not a pair of strings");
    style.item_separator = string_argument(pair->items[0], "a separator of JSON").bytes;
    style.key_separator = string_argument(pair->items[1], "a separator of JSON").bytes;
  }
  style.sort_keys = arguments.get(3) && arguments.at(3).truth();
  return style;
}

Value tojson(Context& context, const Value& subject, const Bound& arguments) {
  return make_text(to_json(subject, json_style(arguments, context.budget), context.budget), context.budget);
}

Value if_undefined(Context&, const Value& subject, const Bound& arguments) {
  const bool replace_false = arguments.get(1) && arguments.at(1).truth();
  if (!subject.is_undefined() && !(replace_false && !subject.truth())) return subject;
  return arguments.get(0) ? arguments.at(0) : Value("");
}

}  // namespace

const std::vector<Builtin>& text_filters() {
  static const std::vector<Builtin> table = {
      {"upper", {}, 0, mapped_shown<upper>},
      {"lower", {}, 0, mapped_shown<lower>},
      {"capitalize", {}, 0, mapped_shown<capitalized>},
      {"title", {}, 0, mapped_shown<title_words>},
      {"trim", {"chars"}, 0, trim},
      {"replace", {"old", "new", "count"}, 2, replace_in_shown},
      {"string", {}, 0, string},
      {"safe", {}, 0, safe},
      {"indent", {"width", "first", "blank"}, 0, indent},
      {"format", {}, 0, nullptr, format},
      {"tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, tojson},
      {"default", {"default_value", "boolean"}, 0, if_undefined},
      {"d", {"default_value", "boolean"}, 0, if_undefined},
  };
  return table;
}

// The filters that return numbers.

namespace {

// Returns the text without surrounding whitespace. A text without ASCII digits is not a number, except if it has digits
// of another script.
std::string_view without_space(const std::string& text, Budget& budget) {
  const std::string_view inside = stripped(text, {}, Ends::both, budget);
  budget.scan(inside.size());
  for (std::size_t at = 0; at < inside.size();) {
    const Utf8Char character = first_utf8(inside.substr(at));
    if (character.size > 1 && class_of(character.code_point) == CharClass::number) {
      throw Failure("reading a number that is not ASCII is not supported");
    }
    at += character.size;
  }
  return inside;
}

bool is_ascii_alnum(char c) {
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

// Digits with optional single underscores between them; std::nullopt for any other text.
std::optional<std::string> plain_digits(std::string_view text) {
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      digits += text[i];
    } else if (i == 0 || i + 1 == text.size() || !is_ascii_alnum(text[i - 1]) || !is_ascii_alnum(text[i + 1])) {
      return std::nullopt;
    }
  }
  return digits;
}

// int(text), std::nullopt if Python raises ValueError.
std::optional<std::int64_t> parse_integer(std::string_view text) {
  const auto digits = plain_digits(text.substr(text.starts_with('+') ? 1 : 0));
  if (!digits || digits->empty() || (text[0] == '+' && (*digits)[0] == '-')) return std::nullopt;
  std::int64_t number = 0;
  const char* const end = digits->data() + digits->size();
  const auto parsed = std::from_chars(digits->data(), end, number);
  if (parsed.ptr != end || parsed.ec == std::errc::invalid_argument) return std::nullopt;
  if (parsed.ec != std::errc()) throw Failure("the number does not fit in an integer of 64 bits");
  return number;
}

// float(text), std::nullopt if Python raises ValueError.
std::optional<double> parse_float(std::string_view text) {
  const auto plain = plain_digits(text);
  if (!plain || plain->empty()) return std::nullopt;
  std::string digits = *plain;
  std::transform(digits.begin(), digits.end(), digits.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  const std::string unsigned_digits = digits.substr(digits[0] == '-' || digits[0] == '+' ? 1 : 0);
  const bool is_word = unsigned_digits == "inf" || unsigned_digits == "infinity" || unsigned_digits == "nan";
  if (!is_word && digits.find_first_not_of("0123456789.e+-") != std::string::npos) return std::nullopt;
  if (unsigned_digits.empty()) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(digits.c_str(), &end);
  return *end == '\0' ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> truncated(double number) {
  if (std::isnan(number)) return std::nullopt;
  const double whole = std::trunc(number);
  if (whole < -0x1p63 || whole >= 0x1p63) throw Failure("the number does not fit in an integer of 64 bits");
  return static_cast<std::int64_t>(whole);
}

Value to_integer(Context& context, const Value& subject, const Bound& arguments) {
  if (arguments.get(1)) throw Failure("a base of 'int' is not supported");
  const Value otherwise = arguments.get(0) ? arguments.at(0) : Value(std::int64_t{0});
  require_defined(subject);
  if (const auto integer = subject.integer()) return *integer;
  if (const auto* const number = subject.get_if<double>()) {
    const auto whole = truncated(*number);
    return whole ? Value(*whole) : otherwise;
  }
  const Text* const text = subject.text();
  if (!text) return otherwise;
  const std::string_view digits = without_space(text->bytes, context.budget);
  if (const auto integer = parse_integer(digits)) return *integer;
  const auto number = parse_float(digits);  // "42.23" is 42
  if (!number || std::isinf(*number)) return otherwise;
  const auto whole = truncated(*number);
  return whole ? Value(*whole) : otherwise;
}

Value to_float(Context& context, const Value& subject, const Bound& arguments) {
  require_defined(subject);
  if (const auto* const number = subject.get_if<double>()) return *number;
  if (const auto integer = subject.integer()) return static_cast<double>(*integer);
  if (const Text* const text = subject.text()) {
    if (const auto number = parse_float(without_space(text->bytes, context.budget))) return *number;
  }
  return arguments.get(0) ? arguments.at(0) : Value(0.0);
}

}  // namespace

const std::vector<Builtin>& number_filters() {
  static const std::vector<Builtin> table = {
      {"int", {"default", "base"}, 0, to_integer},
      {"float", {"default"}, 0, to_float},
  };
  return table;
}

// The filters that process sequences as a whole.

namespace {

bool flag(const Value* argument) {
  return argument && argument->truth();
}

Value length(Context&, const Value& subject, const Bound&) {
  const auto size = size_of(subject);
  if (!size) throw Failure(subject.kind_name() + " has no length");
  return static_cast<std::int64_t>(*size);
}

Value first(Context& context, const Value& subject, const Bound&) {
  auto item = items_of(context, subject)();
  return item ? std::move(*item) : make_undefined("there is no first item: the sequence is empty");
}

// The domain of Python's reversed(): everything with a length.
std::vector<Value> reversed_items(Context& context, const Value& subject) {
  if (!size_of(subject)) throw Failure("cannot go backwards through " + subject.kind_name());
  std::vector<Value> items = all_items_of(context, subject);
  std::reverse(items.begin(), items.end());
  return items;
}

Value last(Context& context, const Value& subject, const Bound&) {
  const std::vector<Value> items = reversed_items(context, subject);
  return items.empty() ? make_undefined("there is no last item: the sequence is empty") : items.front();
}

Value list(Context& context, const Value& subject, const Bound&) {
  return make_list(all_items_of(context, subject), context.budget);
}

Value iterator_over(Context& context, std::vector<Value> items) {
  const Value list = make_list(std::move(items), context.budget);
  return static_cast<Object*>(context.own<Iterator>(items_of(context, list)));
}

Value reverse(Context& context, const Value& subject, const Bound&) {
  if (const Text* const text = subject.text()) {
    if (text->markup) throw Failure("working with escaped text is not supported");
    context.budget.make(text->bytes.size() * sizeof(std::string_view));
    std::vector<std::string_view> characters = characters_of(text->bytes);
    std::string result;
    for (auto character = characters.rbegin(); character != characters.rend(); ++character) result += *character;
    return make_text(std::move(result), context.budget);
  }
  if (size_of(subject)) return iterator_over(context, reversed_items(context, subject));
  std::vector<Value> items = all_items_of(context, subject);
  std::reverse(items.begin(), items.end());
  return make_list(std::move(items), context.budget);
}

Value join_items(Context& context, const Value& subject, const Bound& arguments) {
  const std::string separator = arguments.get(0) ? shown(arguments.at(0), context.budget) : "";
  const AttributePath path(arguments.get(1));
  std::string result;
  bool is_first = true;
  const Items items = items_of(context, subject);
  while (const auto item = items()) {
    if (!is_first) {
      context.budget.make(separator.size());
      result += separator;
    }
    is_first = false;
    result += shown(path.follow(context, *item), context.budget);
  }
  return make_text(std::move(result), context.budget);
}

struct Keyed {
  Value key;
  Value item;
};

std::vector<Value> sorted(Context& context, std::vector<Keyed> entries, bool reverse) {
  const auto before = [&](const Keyed& a, const Keyed& b) {
    return reverse ? less(b.key, a.key, false, context.budget) : less(a.key, b.key, false, context.budget);
  };
  std::stable_sort(entries.begin(), entries.end(), before);
  std::vector<Value> items;
  items.reserve(entries.size());
  for (Keyed& entry : entries) items.push_back(std::move(entry.item));
  return items;
}

// The paths of an argument such as "age,name".
std::vector<AttributePath> paths_of(const Value* attribute, Budget& budget) {
  const Text* const text = attribute ? attribute->text() : nullptr;
  if (!text) return {AttributePath(attribute)};
  std::vector<AttributePath> paths;
  for (const std::string_view part : split(text->bytes, ",", -1, budget)) {
    const Value name(std::string{part});
    paths.emplace_back(&name);
  }
  return paths;
}

Value sort(Context& context, const Value& subject, const Bound& arguments) {
  const bool case_sensitive = flag(arguments.get(1));
  const std::vector<AttributePath> paths = paths_of(arguments.get(2), context.budget);
  std::vector<Keyed> entries;
  for (Value& item : all_items_of(context, subject)) {
    std::vector<Value> keys;
    for (const AttributePath& path : paths)
      keys.push_back(sort_key(context, path.follow(context, item), case_sensitive));
    entries.push_back({.key = make_list(std::move(keys), context.budget), .item = std::move(item)});
  }
  return make_list(sorted(context, std::move(entries), flag(arguments.get(0))), context.budget);
}

Value dictsort(Context& context, const Value& subject, const Bound& arguments) {
  const bool case_sensitive = flag(arguments.get(0));
  const std::string by = arguments.get(1) ? string_argument(arguments.at(1), "'by'").bytes : "key";
  if (by != "key" && by != "value") throw Failure("a mapping is sorted by 'key' or 'value'");
  require_defined(subject);
  if (!subject.dict()) throw Failure("'dictsort' got " + subject.kind_name() + ", expected a mapping");
  std::vector<Keyed> entries;
  for (const auto& [key, value] : subject.dict()->entries()) {
    entries.push_back({.key = sort_key(context, by == "key" ? key : value, case_sensitive),
                       .item = make_tuple({key, value}, context.budget)});
  }
  return make_list(sorted(context, std::move(entries), flag(arguments.get(2))), context.budget);
}

Value items(Context& context, const Value& subject, const Bound&) {
  const auto pairs = [&context, subject, source = Items()]() mutable -> std::optional<Value> {
    if (subject.is_undefined()) return std::nullopt;
    const auto* const dict = subject.get_if<Value::DictRef>();
    if (!dict) throw Failure("'items' got " + subject.kind_name() + ", expected a mapping");
    if (!source) {
      source = items_of(context, std::make_shared<const DictView>(DictView{*dict, DictView::Part::items}));
    }
    return source();
  };
  return static_cast<Object*>(context.own<Iterator>(pairs));
}

Value unique(Context& context, const Value& subject, const Bound& arguments) {
  const bool case_sensitive = flag(arguments.get(0));
  const AttributePath path(arguments.get(1));
  const auto seen = std::make_shared<Dict>();
  const auto next = [&context, case_sensitive, path, seen,
                     source = items_of(context, subject)]() -> std::optional<Value> {
    while (auto item = source()) {
      Value key = sort_key(context, path.follow(context, *item), case_sensitive);
      if (seen->find(key)) continue;
      context.budget.make(sizeof(Dict::Entry));
      seen->set(std::move(key), None{});
      return item;
    }
    return std::nullopt;
  };
  return static_cast<Object*>(context.own<Iterator>(next));
}

}  // namespace

const std::vector<Builtin>& sequence_filters() {
  static const std::vector<Builtin> table = {
      {"length", {}, 0, length},
      {"count", {}, 0, length},
      {"first", {}, 0, first},
      {"last", {}, 0, last},
      {"list", {}, 0, list},
      {"reverse", {}, 0, reverse},
      {"join", {"d", "attribute"}, 0, join_items},
      {"sort", {"reverse", "case_sensitive", "attribute"}, 0, sort},
      {"dictsort", {"case_sensitive", "by", "reverse"}, 0, dictsort},
      {"items", {}, 0, items},
      {"unique", {"case_sensitive", "attribute"}, 0, unique},
  };
  return table;
}

}  // namespace minimind::jinja
