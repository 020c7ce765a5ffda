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

// The filters that make text.

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

Value escape(Context& context, const Value& subject, const Bound&) {
  if (subject.text() && subject.text()->markup) return subject;
  return markup(context, escaped_html(shown(subject, context.budget)));
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

Value center(Context& context, const Value& subject, const Bound& arguments) {
  const std::string text = text_argument(context, subject);
  const std::int64_t width = arguments.get(0) ? integer_argument(arguments.at(0), "the width") : 80;
  const std::int64_t padding = width - static_cast<std::int64_t>(count_characters(text));
  if (padding <= 0) return make_text(text, context.budget);
  context.budget.make(static_cast<std::size_t>(padding));
  const auto left = static_cast<std::size_t>(padding / 2 + (padding & width & 1));
  return make_text(std::string(left, ' ') + text + std::string(static_cast<std::size_t>(padding) - left, ' '),
                   context.budget);
}

Value format(Context& context, const Value& subject, const Arguments& arguments) {
  const Text text(text_argument(context, subject));
  if (arguments.keywords.empty()) return formatted(context, text, make_tuple(arguments.positional, context.budget));
  if (!arguments.positional.empty()) throw Failure("a format takes named arguments or others, not both");
  Dict named;
  for (const auto& [name, value] : arguments.keywords) named.set(name, value);
  return formatted(context, text, make_dict(std::move(named), context.budget));
}

Value count_words(Context& context, const Value& subject, const Bound&) {
  const std::string text = text_argument(context, subject);
  context.budget.map_case(text.size());
  std::int64_t count = 0;
  bool in_word = false;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char character = first_utf8(std::string_view(text).substr(at));
    const bool was_in_word = std::exchange(in_word, is_python_word(character.code_point));
    count += in_word && !was_in_word ? 1 : 0;
    at += character.size;
  }
  return count;
}

Value truncate(Context& context, const Value& subject, const Bound& arguments) {
  const auto number = [&](std::size_t parameter, std::int64_t if_absent, std::string_view what) {
    const Value* const given = arguments.get(parameter);
    return given ? integer_argument(*given, what) : if_absent;
  };
  const std::int64_t length = number(0, 255, "the length");
  const bool cuts_words = arguments.get(1) && arguments.at(1).truth();
  const Text end = arguments.get(2) ? string_argument(arguments.at(2), "the end") : Text("...");
  const bool has_leeway = arguments.get(3) && !arguments.at(3).is_none();
  const std::int64_t leeway = has_leeway ? number(3, 0, "the leeway") : 5;
  if (length < static_cast<std::int64_t>(end.length)) throw Failure("the length is less than that of the end");
  if (leeway < 0) throw Failure("the leeway is negative");
  const auto size = size_of(subject);
  if (size && static_cast<std::int64_t>(*size) - length <= leeway) return subject;
  const Text& text = string_argument(subject, "what to truncate");
  const auto kept = static_cast<std::size_t>(length) - end.length;
  std::string result = text.bytes.substr(0, byte_of_character(text.bytes, kept));
  if (!cuts_words) result.resize(std::min(result.rfind(' '), result.size()));
  return make_text(result + end.bytes, context.budget);
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
    if (!pair || pair->items.size() != 2) throw Failure("the separators of JSON are no pair of strings");
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
      {"escape", {}, 0, escape},
      {"e", {}, 0, escape},
      {"indent", {"width", "first", "blank"}, 0, indent},
      {"center", {"width"}, 0, center},
      {"format", {}, 0, nullptr, format},
      {"wordcount", {}, 0, count_words},
      {"truncate", {"length", "killwords", "end", "leeway"}, 0, truncate},
      {"tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, tojson},
      {"default", {"default_value", "boolean"}, 0, if_undefined},
      {"d", {"default_value", "boolean"}, 0, if_undefined},
  };
  return table;
}

// The filters that make numbers.

namespace {

Value absolute(Context&, const Value& subject, const Bound&) {
  if (const auto* const number = subject.get_if<double>()) return std::fabs(*number);
  const auto integer = subject.integer();
  require_defined(subject);
  if (!integer) throw Failure(subject.kind_name() + " has no absolute value");
  return *integer < 0 ? negated(*integer) : Value(*integer);
}

// The text without space around it. What has no ASCII digits is no number, unless the digits of another script make
// one.
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

// Digits that may have single underscores between them; nothing when there is anything else.
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

// int(text, base), nothing where Python raises ValueError.
std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t base) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const auto prefix_base = [&]() -> std::int64_t {
    if (text.size() < 2 || text[0] != '0') return 0;
    const char letter = static_cast<char>(text[1] | 0x20);
    return letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  }();
  if (prefix_base != 0 && (base == prefix_base || base == 0)) {
    base = prefix_base;
    text.remove_prefix(text.size() > 2 && text[2] == '_' ? 3 : 2);
  } else if (base == 0) {
    base = 10;
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != std::string_view::npos)
      return std::nullopt;
  }
  const auto digits = plain_digits(text);
  if (!digits || digits->empty() || (*digits)[0] == '-') return std::nullopt;
  const std::string signed_digits = (negative ? "-" : "") + *digits;
  std::int64_t number = 0;
  const char* const end = signed_digits.data() + signed_digits.size();
  const auto parsed = std::from_chars(signed_digits.data(), end, number, static_cast<int>(base));
  if (parsed.ptr != end || parsed.ec == std::errc::invalid_argument) return std::nullopt;
  if (parsed.ec != std::errc()) throw Failure("the number does not fit in an integer of 64 bits");
  return number;
}

// float(text), nothing where Python raises ValueError.
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
  const Value otherwise = arguments.get(0) ? arguments.at(0) : Value(std::int64_t{0});
  const std::int64_t base = arguments.get(1) ? integer_argument(arguments.at(1), "the base") : 10;
  require_defined(subject);
  if (const auto integer = subject.integer()) return *integer;
  if (const auto* const number = subject.get_if<double>()) {
    const auto whole = truncated(*number);
    return whole ? Value(*whole) : otherwise;
  }
  const Text* const text = subject.text();
  if (!text) return otherwise;
  const std::string_view digits = without_space(text->bytes, context.budget);
  const bool has_base = base == 0 || (base >= 2 && base <= 36);
  if (const auto integer = has_base ? parse_integer(digits, base) : std::nullopt) return *integer;
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

// Python's round(): to the nearest, halves of the exact value to the even digit.
double rounded(double number, std::int64_t precision) {
  if (!std::isfinite(number)) return number;
  std::array<char, 512> digits;
  std::snprintf(digits.data(), digits.size(), "%.*f", static_cast<int>(precision), number);
  return std::strtod(digits.data(), nullptr);
}

// round(number, -places): to the nearest multiple of a power of ten, halves to the even one.
std::int64_t rounded_to_tens(std::int64_t number, std::int64_t places) {
  constexpr std::int64_t digits_of_an_integer = 19;
  if (places > digits_of_an_integer) return 0;
  __int128 unit = 1;
  for (std::int64_t i = 0; i < places; ++i) unit *= 10;
  __int128 multiple = number / unit;
  const __int128 rest = 2 * (number - multiple * unit);
  const bool is_half = rest == unit || rest == -unit;
  if (rest > unit || rest < -unit || (is_half && multiple % 2 != 0)) multiple += number < 0 ? -1 : 1;
  const __int128 result = multiple * unit;
  if (result > INT64_MAX || result < INT64_MIN) throw Failure("the result does not fit in an integer of 64 bits");
  return static_cast<std::int64_t>(result);
}

Value round(Context&, const Value& subject, const Bound& arguments) {
  const std::int64_t precision = arguments.get(0) ? integer_argument(arguments.at(0), "the precision") : 0;
  const std::string method = arguments.get(1) ? string_argument(arguments.at(1), "the method").bytes : "common";
  require_defined(subject);
  if (!subject.is_number()) throw Failure("cannot round " + subject.kind_name());
  const auto integer = subject.integer();
  if (integer && precision < 0 && precision > -100 && method == "common") return rounded_to_tens(*integer, -precision);
  if (precision < 0 || precision > 100) throw Failure("only 0 to 100 digits are supported in rounding");
  if (method != "common" && method != "ceil" && method != "floor") {
    throw Failure("the method of rounding is not common, ceil or floor");
  }
  if (method == "common") return integer ? Value(*integer) : Value(rounded(*subject.get_if<double>(), precision));
  const double number = integer ? static_cast<double>(*integer) : *subject.get_if<double>();
  if (!std::isfinite(number)) throw Failure("cannot round a number that is not finite");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double whole = method == "ceil" ? std::ceil(number * scale) : std::floor(number * scale);
  return (whole + 0.0) / scale;  // an integer in Python, which has no negative zero
}

}  // namespace

const std::vector<Builtin>& number_filters() {
  static const std::vector<Builtin> table = {
      {"abs", {}, 0, absolute},
      {"int", {"default", "base"}, 0, to_integer},
      {"float", {"default"}, 0, to_float},
      {"round", {"precision", "method"}, 0, round},
  };
  return table;
}

// The filters that work on sequences as a whole.

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

// What Python's reversed() takes: everything with a length.
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
  if (!subject.dict()) throw Failure("'dictsort' wants a mapping; found " + subject.kind_name());
  std::vector<Keyed> entries;
  for (const auto& [key, value] : subject.dict()->entries()) {
    entries.push_back({.key = sort_key(context, by == "key" ? key : value, case_sensitive),
                       .item = make_tuple({key, value}, context.budget)});
  }
  return make_list(sorted(context, std::move(entries), flag(arguments.get(2))), context.budget);
}

template <bool wants_largest>
Value extreme(Context& context, const Value& subject, const Bound& arguments) {
  const bool case_sensitive = flag(arguments.get(0));
  const AttributePath path(arguments.get(1));
  std::optional<Keyed> best;
  const Items items = items_of(context, subject);
  while (auto item = items()) {
    Keyed entry{.key = sort_key(context, path.follow(context, *item), case_sensitive), .item = std::move(*item)};
    const bool is_better = !best || (wants_largest ? less(best->key, entry.key, false, context.budget)
                                                   : less(entry.key, best->key, false, context.budget));
    if (is_better) best = std::move(entry);
  }
  return best ? best->item : make_undefined("there is no item to choose: the sequence is empty");
}

Value sum(Context& context, const Value& subject, const Bound& arguments) {
  const AttributePath path(arguments.get(0));
  Value total = arguments.get(1) ? arguments.at(1) : Value(std::int64_t{0});
  if (total.text()) throw Failure("'sum' does not join strings: use 'join'");
  const Items items = items_of(context, subject);
  while (const auto item = items()) {
    total = binary_operation(context, Operator::add, total, path.follow(context, *item));
  }
  return total;
}

Value items(Context& context, const Value& subject, const Bound&) {
  const auto pairs = [&context, subject, source = Items()]() mutable -> std::optional<Value> {
    if (subject.is_undefined()) return std::nullopt;
    const auto* const dict = subject.get_if<Value::DictRef>();
    if (!dict) throw Failure("'items' wants a mapping; found " + subject.kind_name());
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

Value batch(Context& context, const Value& subject, const Bound& arguments) {
  const std::int64_t count = integer_argument(arguments.at(0), "the size of a batch");
  std::vector<Value> batches;
  std::vector<Value> current;
  const Items items = items_of(context, subject);
  while (auto item = items()) {
    if (static_cast<std::int64_t>(current.size()) == count)
      batches.push_back(make_list(std::exchange(current, {}), context.budget));
    current.push_back(std::move(*item));
  }
  if (!current.empty()) {
    const Value* const fill = arguments.get(1);
    if (fill && !fill->is_none() && static_cast<std::int64_t>(current.size()) < count) {
      context.budget.make(static_cast<std::size_t>(count));
      context.budget.make(static_cast<std::size_t>(count) * sizeof(Value));
      current.resize(static_cast<std::size_t>(count), *fill);
    }
    batches.push_back(make_list(std::move(current), context.budget));
  }
  return iterator_over(context, std::move(batches));
}

Value slice(Context& context, const Value& subject, const Bound& arguments) {
  const std::int64_t given = integer_argument(arguments.at(0), "the number of slices");
  if (given == 0) throw Failure("the number of slices is zero");
  const std::size_t count = given < 0 ? 0 : static_cast<std::size_t>(given);
  const std::vector<Value> all = all_items_of(context, subject);
  const Value* const fill = arguments.get(1);
  std::vector<Value> slices;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_longer = i < all.size() % count;
    const std::size_t end = begin + all.size() / count + (is_longer ? 1 : 0);
    std::vector<Value> items(all.begin() + static_cast<std::ptrdiff_t>(begin),
                             all.begin() + static_cast<std::ptrdiff_t>(end));
    if (fill && !fill->is_none() && !is_longer) items.push_back(*fill);
    slices.push_back(make_list(std::move(items), context.budget));
    begin = end;
  }
  return iterator_over(context, std::move(slices));
}

Value group_of(Context& context, Value key, std::vector<Value> items) {
  List pair{.items = {std::move(key), make_list(std::move(items), context.budget)}, .is_tuple = true, .is_group = true};
  pair.depth = 1 + std::max(pair.items[0].depth(), pair.items[1].depth());
  context.budget.make(sizeof(List) + 2 * sizeof(Value));
  return std::make_shared<const List>(std::move(pair));
}

Value groupby(Context& context, const Value& subject, const Bound& arguments) {
  const Value* const otherwise = arguments.get(1);
  const bool has_default = otherwise && !otherwise->is_none();
  const AttributePath path(&arguments.at(0), has_default ? std::optional(*otherwise) : std::nullopt);
  const bool case_sensitive = flag(arguments.get(2));
  const auto key_of = [&](const Value& item) { return sort_key(context, path.follow(context, item), case_sensitive); };
  std::vector<Keyed> entries;
  for (Value& item : all_items_of(context, subject)) {
    Value key = key_of(item);
    entries.push_back({.key = std::move(key), .item = std::move(item)});
  }
  std::vector<Value> groups;
  std::vector<Value> group;
  const auto finish = [&] {
    // The key as the first item has it, not in lower case.
    Value key = path.follow(context, group.front());
    groups.push_back(group_of(context, std::move(key), std::exchange(group, {})));
  };
  for (Value& item : sorted(context, std::move(entries), false)) {
    if (!group.empty() && !equal(key_of(group.front()), key_of(item), context.budget)) finish();
    group.push_back(std::move(item));
  }
  if (!group.empty()) finish();
  return make_list(std::move(groups), context.budget);
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
      {"min", {"case_sensitive", "attribute"}, 0, extreme<false>},
      {"max", {"case_sensitive", "attribute"}, 0, extreme<true>},
      {"sum", {"attribute", "start"}, 0, sum},
      {"items", {}, 0, items},
      {"unique", {"case_sensitive", "attribute"}, 0, unique},
      {"batch", {"linecount", "fill_with"}, 1, batch},
      {"slice", {"slices", "fill_with"}, 1, slice},
      {"groupby", {"attribute", "default", "case_sensitive"}, 1, groupby},
  };
  return table;
}

}  // namespace minimind::jinja
