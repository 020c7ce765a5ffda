#include "runtime/jinja/show.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "runtime/jinja/text.h"
#include "runtime/text/utf8.h"
#include "weights/io/error.h"
#include "weights/io/quote.h"

namespace minimind::jinja {
namespace {

// repr(), piece by piece, each paid for before it is added.
class Shower {
 public:
  explicit Shower(Budget& budget) : budget_(budget) {}

  void show(const Value& value) {
    budget_.spend(1);
    const Budget::Level level(budget_);
    if (const Text* const text = value.text()) {
      budget_.make(text->bytes.size());
      const std::string quoted = quoted_text(text->bytes);
      add(text->markup ? "Markup(" + quoted + ")" : quoted);
    } else if (const List* const list = value.list()) {
      show_list(*list);
    } else if (const Dict* const dict = value.dict()) {
      show_dict(*dict);
    } else if (const DictView* const view = value.view()) {
      show_view(*view);
    } else if (const Range* const range = value.range()) {
      add("range(" + std::to_string(range->start) + ", " + std::to_string(range->stop) +
          (range->step == 1 ? "" : ", " + std::to_string(range->step)) + ")");
    } else if (const Namespace* const name_space = value.name_space()) {
      add("<Namespace ");
      show_dict(name_space->attributes);
      add(">");
    } else {
      show_scalar(value);
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void add(const std::string& piece) {
    budget_.make(piece.size());
    text_ += piece;
  }

  void show_scalar(const Value& value) {
    if (value.is_undefined() || value.is_missing()) return add("Undefined");
    if (value.is_none()) return add("None");
    if (const auto* const flag = value.get_if<bool>()) return add(*flag ? "True" : "False");
    if (const auto* const number = value.get_if<double>()) return add(float_text(*number));
    if (const auto number = value.integer()) return add(std::to_string(*number));
    throw Failure("cannot print " + value.kind_name());
  }

  void show_list(const List& list) {
    add(list.is_tuple ? "(" : "[");
    show_items(list.items);
    add(!list.is_tuple ? "]" : list.items.size() == 1 ? ",)" : ")");
  }

  void show_items(const std::vector<Value>& items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) add(", ");
      show(items[i]);
    }
  }

  void show_dict(const Dict& dict) {
    add("{");
    bool first = true;
    for (const auto& [key, value] : dict.entries()) {
      if (!first) add(", ");
      first = false;
      show(key);
      add(": ");
      show(value);
    }
    add("}");
  }

  void show_view(const DictView& view) {
    const bool has_keys = view.part != DictView::Part::values;
    const bool has_values = view.part != DictView::Part::keys;
    add(!has_keys ? "dict_values([" : has_values ? "dict_items([" : "dict_keys([");
    bool first = true;
    for (const auto& [key, value] : view.dict->entries()) {
      if (!first) add(", ");
      first = false;
      if (has_keys && has_values) add("(");
      if (has_keys) show(key);
      if (has_keys && has_values) add(", ");
      if (has_values) show(value);
      if (has_keys && has_values) add(")");
    }
    add("])");
  }

  Budget& budget_;
  std::string text_;
};

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Budget& budget) : style_(style), budget_(budget) {}

  void write(const Value& value) {
    budget_.spend(1);
    const Budget::Level level(budget_);
    if (const Text* const text = value.text()) {
      add(quote(text->bytes));
    } else if (const List* const list = value.list()) {
      write_list(*list);
    } else if (const Dict* const dict = value.dict()) {
      write_dict(*dict);
    } else {
      add(scalar(value));
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void add(const std::string& piece) {
    budget_.make(piece.size());
    text_ += piece;
  }

  std::string scalar(const Value& value) const {
    if (value.is_none()) return "null";
    if (const auto* const flag = value.get_if<bool>()) return *flag ? "true" : "false";
    if (const auto* const number = value.get_if<double>()) {
      if (std::isnan(*number)) return "NaN";
      if (std::isinf(*number)) return *number < 0 ? "-Infinity" : "Infinity";
      return float_text(*number);
    }
    if (const auto number = value.integer()) return std::to_string(*number);
    throw Failure("cannot write " + value.kind_name() + " as JSON");
  }

  void new_line() {
    if (!style_.indent) return;
    if (style_.indent->size() > 0) budget_.make(level_ * style_.indent->size());
    text_ += '\n';
    for (std::size_t i = 0; i < level_; ++i) text_ += *style_.indent;
  }

  void write_list(const List& list) {
    if (list.items.empty()) return add("[]");
    add("[");
    ++level_;
    new_line();
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) separate();
      write(list.items[i]);
    }
    --level_;
    new_line();
    add("]");
  }

  void separate() {
    add(style_.item_separator);
    new_line();
  }

  void write_dict(const Dict& dict) {
    if (dict.size() == 0) return add("{}");
    std::vector<const Dict::Entry*> entries;
    for (const auto& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [&](const Dict::Entry* a, const Dict::Entry* b) {
        return less(a->first, b->first, false, budget_);
      });
    }
    add("{");
    ++level_;
    new_line();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) separate();
      write_key(entries[i]->first);
      add(style_.key_separator);
      write(entries[i]->second);
    }
    --level_;
    new_line();
    add("}");
  }

  void write_key(const Value& key) {
    if (key.list() || key.is_undefined()) throw Failure("cannot write " + key.kind_name() + " as a key of JSON");
    add(quote(key.text() ? key.text()->bytes : scalar(key)));
  }

  static void add_unit(std::string& text, unsigned unit) {
    std::array<char, 16> escape;
    std::snprintf(escape.data(), escape.size(), "\\u%04x", unit);
    text += escape.data();
  }

  std::string quote(const std::string& text) const {
    constexpr std::string_view special = "\"\\\n\r\t\b\f";
    constexpr std::string_view letters = "\"\\nrtbf";
    budget_.make(text.size());
    std::string result = "\"";
    for (std::size_t at = 0; at < text.size();) {
      const Utf8Char character = first_utf8(std::string_view(text).substr(at));
      const char32_t c = character.code_point;
      const std::size_t known = c < 0x80 ? special.find(static_cast<char>(c)) : std::string_view::npos;
      if (known != std::string_view::npos) {
        result.append("\\").append(1, letters[known]);
      } else if (c >= 0x20 && (!style_.ensure_ascii || c < 0x7F)) {
        result.append(text, at, character.size);
      } else if (c < 0x10000) {
        add_unit(result, static_cast<unsigned>(c));
      } else {
        add_unit(result, 0xD800 + ((static_cast<unsigned>(c) - 0x10000) >> 10));
        add_unit(result, 0xDC00 + (static_cast<unsigned>(c) & 0x3FF));
      }
      at += character.size;
    }
    return result + "\"";
  }

  const JsonStyle& style_;
  Budget& budget_;
  std::size_t level_ = 0;
  std::string text_;
};

}  // namespace

std::string shown(const Value& value, Budget& budget) {
  if (const Text* const text = value.text()) {
    budget.make(text->bytes.size());
    return text->bytes;
  }
  if (value.is_undefined()) return {};
  Shower shower(budget);
  shower.show(value);
  return shower.take();
}

std::string to_json(const Value& value, const JsonStyle& style, Budget& budget) {
  JsonWriter writer(style, budget);
  writer.write(value);
  return writer.take();
}

namespace {

using Json = nlohmann::json;

constexpr std::size_t max_json_depth = 150;

// Builds the value as nlohmann's parser, which does not recurse, reads along.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const std::string& source) : source_(source) {}

  Value take() { return std::move(result_); }

  bool null() override { return add(None{}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(std::int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(INT64_MAX)) fail_large(std::to_string(value));
    return add(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& digits) override {
    if (digits.find_first_of(".eE") == string_t::npos) fail_large(digits);
    return add(value);
  }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool key(string_t& name) override {
    open_.back().key = std::move(name);
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    throw Error(fmt::format("{}: is not valid JSON at byte {}", source_, position));
  }

 private:
  struct Open {
    bool is_list;
    std::string key;
    std::vector<Value> items;
    Dict dict;
  };

  [[noreturn]] void fail_large(const std::string& digits) const {
    throw Error(fmt::format("{}: the integer {} does not fit in 64 bits", source_, digits.substr(0, 40)));
  }

  bool add(Value value) {
    if (open_.empty()) {
      result_ = std::move(value);
    } else if (open_.back().is_list) {
      open_.back().items.push_back(std::move(value));
    } else {
      open_.back().dict.set(std::exchange(open_.back().key, {}), std::move(value));
    }
    return true;
  }

  bool open(bool is_list) {
    if (open_.size() == max_json_depth)
      throw Error(fmt::format("{}: is nested deeper than {} levels", source_, max_json_depth));
    open_.push_back({.is_list = is_list, .key = {}, .items = {}, .dict = {}});
    return true;
  }

  bool close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    return add(done.is_list ? make_list(std::move(done.items), budget_) : make_dict(std::move(done.dict), budget_));
  }

  const std::string& source_;
  Budget budget_{Limits{.steps = SIZE_MAX, .depth = SIZE_MAX, .bytes = SIZE_MAX, .output = SIZE_MAX}};
  std::vector<Open> open_;
  Value result_;
};

}  // namespace

Value parse_json(std::string_view text, const std::string& source) {
  if (text.size() > max_json_size) {
    throw Error(fmt::format("{}: has {} bytes; at most {} are read", source, text.size(), max_json_size));
  }
  Builder builder(source);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

namespace {

constexpr std::size_t max_precision = 400;

[[noreturn]] void refuse_type(char type, const char* kind) {
  throw Failure(std::string("cannot format ") + kind + " as '" + type + "'");
}

std::string times(std::string_view fill, std::size_t count) {
  std::string result;
  result.reserve(fill.size() * count);
  for (std::size_t i = 0; i < count; ++i) result += fill;
  return result;
}

// `sign` and `body` in the width of the spec.
std::string aligned(const std::string& sign, const std::string& body, const FormatSpec& spec, char usual_align,
                    Budget& budget) {
  const std::size_t length = count_characters(sign) + count_characters(body);
  budget.make(sign.size() + body.size());
  if (length >= spec.width) return sign + body;
  const std::size_t missing = spec.width - length;
  budget.make(missing * spec.fill.size());
  const char align = spec.align == '\0' ? usual_align : spec.align;
  if (align == '=') return sign + times(spec.fill, missing) + body;
  const std::size_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  return times(spec.fill, left) + sign + body + times(spec.fill, missing - left);
}

std::string sign_of(bool negative, const FormatSpec& spec) {
  if (negative) return "-";
  return spec.sign == '-' ? "" : std::string(1, spec.sign);
}

// `digits` with the spec's separator between the thousands of their whole part.
std::string grouped(std::string digits, const FormatSpec& spec) {
  if (spec.grouping == '\0') return digits;
  if (spec.align == '=' && spec.width > 0) throw Failure("thousands in a number filled with zeros are not supported");
  const std::size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  for (std::size_t at = whole; at > 3; at -= 3) digits.insert(at - 3, 1, spec.grouping);
  return digits;
}

std::string upper_ascii(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return text;
}

std::string digits_of_float(double magnitude, const FormatSpec& spec) {
  if (!std::isfinite(magnitude)) return std::isnan(magnitude) ? "nan" : "inf";
  const std::size_t precision = spec.precision.value_or(6);
  if (precision > max_precision) throw Failure("a precision over 400 is not supported");
  const char type = spec.type == '%' ? 'f' : static_cast<char>(spec.type | 0x20);
  const std::string format = std::string(spec.alternate ? "%#.*" : "%.*") + type;
  std::array<char, 1024> buffer;
  const int size = std::snprintf(buffer.data(), buffer.size(), format.c_str(), static_cast<int>(precision), magnitude);
  return std::string(buffer.data(), static_cast<std::size_t>(size));
}

}  // namespace

std::optional<std::size_t> take_number(std::string_view text, std::size_t& at) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
  if (end == at) return std::nullopt;
  constexpr std::size_t max_digits = 9;
  std::size_t number = 0;
  if (end - at > max_digits) throw Failure("a width or precision of more than 9 digits is not supported");
  std::from_chars(text.data() + at, text.data() + end, number);
  at = end;
  return number;
}

std::string formatted_text(std::string_view text, const FormatSpec& spec, Budget& budget) {
  if (spec.type != '\0' && spec.type != 's') refuse_type(spec.type, "a string");
  if (spec.align == '=' || spec.sign != '-' || spec.grouping != '\0' || spec.alternate) {
    throw Failure("a string is formatted without sign, separators and #");
  }
  if (spec.precision) text = text.substr(0, byte_of_character(text, *spec.precision));
  return aligned("", std::string(text), spec, '<', budget);
}

std::string formatted_integer(std::int64_t number, const FormatSpec& spec, Budget& budget) {
  if (spec.type != '\0' && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos) {
    return formatted_float(static_cast<double>(number), spec, budget);
  }
  const char type = spec.type == '\0' || spec.type == 'i' || spec.type == 'u' ? 'd' : spec.type;
  const int base = type == 'd' ? 10 : type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 0;
  if (base == 0) refuse_type(type, "an integer");
  if (spec.grouping != '\0' && base != 10) throw Failure("separators in digits that are not decimal are not supported");
  std::array<char, 72> buffer;
  // Through unsigned, for the least integer has no positive counterpart.
  const std::uint64_t magnitude = number < 0 ? -static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), magnitude, base);
  std::string digits(buffer.data(), written.ptr);
  if (spec.precision && digits.size() < *spec.precision) {
    budget.make(*spec.precision);
    digits.insert(0, *spec.precision - digits.size(), '0');
  }
  if (type == 'X') digits = upper_ascii(std::move(digits));
  std::string sign = sign_of(number < 0, spec);
  if (spec.alternate && base != 10) sign.append("0").append(1, type);
  return aligned(sign, grouped(std::move(digits), spec), spec, '>', budget);
}

std::string formatted_float(double number, const FormatSpec& spec, Budget& budget) {
  const double magnitude = std::fabs(number);
  std::string digits;
  if (spec.type == '\0') {
    if (spec.precision) throw Failure("a precision without the type of a number, as in {:.2f}, is not supported");
    digits = float_text(magnitude);
  } else if (std::string_view("eEfFgG%").find(spec.type) == std::string_view::npos) {
    refuse_type(spec.type, "a float");
  } else {
    digits = digits_of_float(spec.type == '%' ? magnitude * 100 : magnitude, spec);
    if (spec.type == 'E' || spec.type == 'F' || spec.type == 'G') digits = upper_ascii(std::move(digits));
    if (spec.type == '%') digits += '%';
  }
  const bool negative = std::signbit(number) && !std::isnan(number);
  return aligned(sign_of(negative, spec), grouped(std::move(digits), spec), spec, '>', budget);
}

namespace {

std::string repr(const Value& value, Budget& budget) {
  const std::string in_list = shown(make_list({value}, budget), budget);
  return in_list.substr(1, in_list.size() - 2);  // a list shows the repr() of its items
}

bool is_one_of(char c, std::string_view set) {
  return c != '\0' && set.find(c) != std::string_view::npos;
}

// What stands behind the colon: [[fill]align][sign][#][0][width][grouping][.precision][type].
FormatSpec parse_spec(std::string_view text) {
  FormatSpec spec;
  std::size_t at = 0;
  const auto peek = [&] { return at < text.size() ? text[at] : '\0'; };
  const auto take = [&] { return text[at++]; };
  const std::size_t first = first_utf8(text).size;
  if (first < text.size() && is_one_of(text[first], "<>^=")) {
    spec.fill = text.substr(0, first);
    at = first;
  }
  if (is_one_of(peek(), "<>^=")) spec.align = take();
  if (is_one_of(peek(), "+- ")) spec.sign = take();
  if (peek() == '#') spec.alternate = take() == '#';
  if (peek() == '0') {
    take();
    if (spec.align == '\0') {
      spec.fill = "0";
      spec.align = '=';
    }
  }
  spec.width = take_number(text, at).value_or(0);
  if (is_one_of(peek(), ",_")) spec.grouping = take();
  if (peek() == '.') {
    take();
    spec.precision = take_number(text, at);
    if (!spec.precision) throw Failure("a format has no precision behind the point");
  }
  if (at < text.size()) spec.type = take();
  if (at != text.size()) throw Failure("the format " + quote(text) + " is not supported");
  return spec;
}

// format(value, spec).
std::string formatted_field(const Value& value, std::string_view spec_text, Budget& budget) {
  if (spec_text.empty()) return shown(value, budget);
  FormatSpec spec = parse_spec(spec_text);
  if (const Text* const text = value.text()) {
    if (spec.align == '=' && spec.fill == "0" && spec_text[0] == '0') spec.align = '<';  // as Python has it since 3.10
    return formatted_text(text->bytes, spec, budget);
  }
  if (const auto* const number = value.get_if<double>()) return formatted_float(*number, spec, budget);
  const auto number = value.integer();
  if (!number) throw Failure("cannot lay out " + value.kind_name() + " as a format says");
  const bool as_float = is_one_of(spec.type, "eEfFgG%");
  if (spec.precision && !as_float) throw Failure("an integer is formatted without a precision");
  if (spec.type == 'i' || spec.type == 'u') throw Failure("a format has an unknown type");
  return formatted_integer(*number, spec, budget);
}

// The argument that a field such as {}, {1} or {name} stands for.
class Fields {
 public:
  explicit Fields(const Arguments& arguments) : arguments_(arguments) {}

  const Value& get(std::string_view field) {
    if (field.find_first_of(".[]") != std::string_view::npos) {
      throw Failure("attributes and items in the fields of a format are not supported");
    }
    const bool is_index = field.find_first_not_of("0123456789") == std::string_view::npos;
    if (!is_index) return named(field);
    if (field.empty() ? has_numbers_ : next_ > 0) throw Failure("a format has fields with and without numbers");
    std::size_t index = next_;
    if (field.empty()) {
      ++next_;
    } else {
      has_numbers_ = true;
      if (std::from_chars(field.data(), field.data() + field.size(), index).ec != std::errc()) index = SIZE_MAX;
    }
    if (index >= arguments_.positional.size()) throw Failure("the format has more places than there are arguments");
    return arguments_.positional[index];
  }

 private:
  const Value& named(std::string_view name) const {
    const auto found = std::find_if(arguments_.keywords.begin(), arguments_.keywords.end(),
                                    [&](const auto& keyword) { return keyword.first == name; });
    if (found == arguments_.keywords.end()) throw Failure("the format has a place that no argument is named for");
    return found->second;
  }

  const Arguments& arguments_;
  std::size_t next_ = 0;
  bool has_numbers_ = false;
};

// field[!conversion][:spec], the inside of a pair of braces.
std::string shown_field(Context& context, std::string_view inside, Fields& fields) {
  if (inside.find('{') != std::string_view::npos) throw Failure("a field within a field of a format is not supported");
  const std::size_t colon = std::min(inside.find(':'), inside.size());
  const std::string_view spec = colon < inside.size() ? inside.substr(colon + 1) : std::string_view();
  std::string_view name = inside.substr(0, colon);
  char conversion = '\0';
  if (const std::size_t mark = name.find('!'); mark != std::string_view::npos) {
    if (mark + 2 != name.size() || !is_one_of(name[mark + 1], "rs")) {
      throw Failure("only the conversions !r and !s are supported in a format");
    }
    conversion = name[mark + 1];
    name = name.substr(0, mark);
  }
  const Value& value = fields.get(name);
  if (conversion == '\0') return formatted_field(value, spec, context.budget);
  const std::string text = conversion == 'r' ? repr(value, context.budget) : shown(value, context.budget);
  return formatted_field(make_text(text, context.budget), spec, context.budget);
}

// format % arguments.
class PercentFormatter {
 public:
  PercentFormatter(Context& context, std::string_view format, const Value& arguments)
      : context_(context), format_(format), arguments_(arguments) {
    const List* const list = arguments.list();
    if (list && list->is_tuple) {
      values_ = list->items;
    } else {
      values_ = {arguments};
    }
  }

  std::string run() {
    std::string result;
    while (at_ < format_.size()) {
      const std::size_t percent = std::min(format_.find('%', at_), format_.size());
      context_.budget.make(percent - at_);
      result += format_.substr(at_, percent - at_);
      at_ = percent + 1;
      if (percent == format_.size()) break;
      result += directive();
    }
    // As in Python, what could be a mapping for %(name)s need not be used.
    const List* const list = arguments_.list();
    const bool may_stay =
        arguments_.dict() || (list && !list->is_tuple) || arguments_.is_undefined() || arguments_.range();
    if (used_ < values_.size() && !may_stay) throw Failure("the format has fewer places than there are arguments");
    return result;
  }

 private:
  char peek() const { return at_ < format_.size() ? format_[at_] : '\0'; }

  const Value& next_value() {
    if (named_) return *named_;
    if (used_ == values_.size()) throw Failure("the format has more places than there are arguments");
    return values_[used_++];
  }

  void take_name() {
    named_ = nullptr;
    if (peek() != '(') return;
    const std::size_t end = format_.find(')', at_);
    const std::string_view name = format_.substr(at_ + 1, end - at_ - 1);
    if (end == std::string_view::npos || name.find('(') != std::string_view::npos) {
      throw Failure("a name in a format has a parenthesis without its counterpart");
    }
    if (!arguments_.dict()) throw Failure("the format has names and no mapping");
    named_ = arguments_.dict()->find(std::string(name));
    if (!named_) throw Failure("the format has the name " + quote(name) + ", which the mapping lacks");
    at_ = end + 1;
  }

  FormatSpec take_spec() {
    FormatSpec spec;
    spec.align = '>';
    bool zeros = false;
    for (; is_one_of(peek(), "#0- +"); ++at_) {
      if (peek() == '#') spec.alternate = true;
      if (peek() == '0') zeros = true;
      if (peek() == '-') spec.align = '<';
      if (peek() == '+' || (peek() == ' ' && spec.sign != '+')) spec.sign = peek();
    }
    spec.width = take_number(format_, at_).value_or(0);
    if (peek() == '.') {
      ++at_;
      spec.precision = peek() == '*' ? std::nullopt : std::optional(take_number(format_, at_).value_or(0));
    }
    if (peek() == '*') throw Failure("a width or precision taken from the arguments is not supported");
    if (is_one_of(peek(), "hlL")) ++at_;
    spec.type = peek();
    ++at_;
    if (zeros && spec.align == '>' && !is_one_of(spec.type, "sr")) {
      spec.fill = "0";
      spec.align = '=';
    }
    return spec;
  }

  std::string directive() {
    if (peek() == '%') {
      ++at_;
      return "%";
    }
    take_name();
    FormatSpec spec = take_spec();
    if (!is_one_of(spec.type, "srdiuxXoeEfFgG")) {
      throw Failure("only %s, %r, %d, %i, %u, %x, %X, %o, %e, %f, %g and %% are supported in a format");
    }
    const Value& value = next_value();
    if (is_one_of(spec.type, "sr")) return text_directive(value, spec);
    require_defined(value);
    const auto integer = value.integer();
    if (is_one_of(spec.type, "eEfFgG")) {
      if (integer) return formatted_float(static_cast<double>(*integer), spec, context_.budget);
      if (!value.is_number()) throw Failure("an argument for a number in a format is " + value.kind_name());
      return formatted_float(*value.get_if<double>(), spec, context_.budget);
    }
    if (integer) return formatted_integer(*integer, spec, context_.budget);
    const auto* const number = value.get_if<double>();
    if (!number || is_one_of(spec.type, "xXo")) {
      throw Failure("an argument for an integer in a format is " + value.kind_name());
    }
    if (!(std::fabs(*number) < 0x1p63)) throw Failure("the number does not fit in an integer of 64 bits");
    return formatted_integer(static_cast<std::int64_t>(*number), spec, context_.budget);
  }

  std::string text_directive(const Value& value, FormatSpec spec) {
    const std::string text = spec.type == 'r' ? repr(value, context_.budget) : shown(value, context_.budget);
    spec.type = 's';
    spec.sign = '-';  // signs and # mean nothing to a text
    spec.alternate = false;
    return formatted_text(text, spec, context_.budget);
  }

  Context& context_;
  std::string_view format_;
  const Value& arguments_;
  std::vector<Value> values_;
  std::size_t at_ = 0;
  std::size_t used_ = 0;
  const Value* named_ = nullptr;
};

}  // namespace

Value format_fields(Context& context, const Value& subject, const Arguments& arguments) {
  const std::string& format = string_argument(subject, "a format").bytes;
  context.budget.make(format.size());
  Fields fields(arguments);
  std::string result;
  for (std::size_t at = 0; at < format.size(); ++at) {
    const char c = format[at];
    if (c != '{' && c != '}') {
      result += c;
    } else if (at + 1 < format.size() && format[at + 1] == c) {
      result += format[at++];
    } else {
      const std::size_t end = c == '{' ? format.find('}', at) : std::string::npos;
      if (end == std::string::npos) throw Failure("a format has a brace without its counterpart");
      result += shown_field(context, std::string_view(format).substr(at + 1, end - at - 1), fields);
      at = end;
    }
  }
  return make_text(std::move(result), context.budget);
}

Value formatted(Context& context, const Text& format, const Value& arguments) {
  return make_text(PercentFormatter(context, format.bytes, arguments).run(), context.budget);
}

}  // namespace minimind::jinja
