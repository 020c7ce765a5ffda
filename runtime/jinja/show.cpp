#include "runtime/jinja/show.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "runtime/jinja/text.h"
#include "runtime/text/python_float.h"
#include "runtime/text/utf8.h"
#include "weights/io/quote.h"

namespace minimind::jinja {
namespace {

// repr(), in pieces, each paid for before it is appended.
class Shower {
 public:
  explicit Shower(Budget& budget) : budget_(budget) {}

  void show(const Value& value) {
    budget_.spend(1);
    const Budget::Level level(budget_);
    if (const Text* const text = value.text()) {
      budget_.make(text->bytes.size());
      const std::string quoted = quoted_text(text->bytes);
      reject_markup(*text);
      add(quoted);
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
    if (const auto* const number = value.get_if<double>()) return add(python_float(*number));
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
      return python_float(*number);
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

// [0][width][.precision][type], after the colon of {:.2f} and after the % of %02d.
struct FormatSpec {
  bool zeros = false;
  std::size_t width = 0;
  std::optional<std::size_t> precision;
  char type = '\0';  // s, d or f
};

// Reads the spec at `at` and moves `at` after it.
FormatSpec take_spec(std::string_view text, std::size_t& at) {
  constexpr std::size_t max_digits = 3;
  const auto take_number = [&]() -> std::optional<std::size_t> {
    const std::size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
    if (end == at) return std::nullopt;
    if (end - at > max_digits) throw Failure("a width or precision of more than 3 digits is not supported");
    std::size_t number = 0;
    std::from_chars(text.data() + at, text.data() + end, number);
    at = end;
    return number;
  };
  FormatSpec spec;
  if (at < text.size() && text[at] == '0') {
    spec.zeros = true;
    ++at;
  }
  spec.width = take_number().value_or(0);
  if (at < text.size() && text[at] == '.') {
    ++at;
    spec.precision = take_number();
    if (!spec.precision) throw Failure("a format without digits after the point is not supported");
  }
  if (at < text.size()) spec.type = text[at++];
  return spec;
}

std::string padded(bool negative, const std::string& digits, const FormatSpec& spec) {
  const std::size_t length = digits.size() + (negative ? 1 : 0);
  const std::string padding(spec.width > length ? spec.width - length : 0, spec.zeros ? '0' : ' ');
  const std::string sign = negative ? "-" : "";
  return spec.zeros ? sign + padding + digits : padding + sign + digits;
}

std::string formatted_integer(std::int64_t number, const FormatSpec& spec) {
  if (spec.precision) throw Failure("an integer is formatted without a precision");
  const std::string digits = std::to_string(number);
  return padded(number < 0, number < 0 ? digits.substr(1) : digits, spec);
}

std::string formatted_float(double number, const FormatSpec& spec) {
  const bool negative = std::signbit(number) && !std::isnan(number);
  if (!std::isfinite(number)) return padded(negative, std::isnan(number) ? "nan" : "inf", spec);
  constexpr std::size_t usual_precision = 6;
  const auto precision = static_cast<int>(spec.precision.value_or(usual_precision));
  return padded(negative, fmt::format("{:.{}f}", std::fabs(number), precision), spec);
}

// format(value, spec).
std::string formatted_field(const Value& value, std::string_view spec_text, Budget& budget) {
  if (spec_text.empty()) return shown(value, budget);
  std::size_t at = 0;
  const FormatSpec spec = take_spec(spec_text, at);
  const auto* const number = value.get_if<double>();
  const auto integer = value.integer();
  const bool as_float = spec.type == 'f' && (number || integer);
  const bool as_integer = (spec.type == 'd' || spec.type == '\0') && integer;
  if (at != spec_text.size() || (!as_float && !as_integer)) {
    throw Failure("the format " + quote(spec_text) + " of " + value.kind_name() + " is not supported");
  }
  if (as_integer) return formatted_integer(*integer, spec);
  return formatted_float(number ? *number : static_cast<double>(*integer), spec);
}

// Returns the argument that a field such as {}, {1} or {name} refers to.
class Fields {
 public:
  explicit Fields(const Arguments& arguments) : arguments_(arguments) {}

  const Value& get(std::string_view field) {
    if (field.find_first_of(".[]!{") != std::string_view::npos) {
      throw Failure("attributes, items, conversions and fields in the fields of a format are not supported");
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
    if (found == arguments_.keywords.end()) throw Failure("the format has a field without a named argument");
    return found->second;
  }

  const Arguments& arguments_;
  std::size_t next_ = 0;
  bool has_numbers_ = false;
};

// Formats a value by the directive `spec` of format % arguments.
std::string formatted_directive(const Value& value, const FormatSpec& spec, Budget& budget) {
  if (spec.type == 's' && !spec.zeros && spec.width == 0 && !spec.precision) return shown(value, budget);
  if (spec.type != 'd' && spec.type != 'f') {
    throw Failure("only %s, %d, %f and %% are supported in a format, a width and a precision only of numbers");
  }
  require_defined(value);
  const auto* const number = value.get_if<double>();
  const auto integer = value.integer();
  if (!number && !integer) throw Failure("an argument for a number in a format is " + value.kind_name());
  if (spec.type == 'f') return formatted_float(number ? *number : static_cast<double>(*integer), spec);
  if (number && !(std::fabs(*number) < 0x1p63)) throw Failure("the number does not fit in an integer of 64 bits");
  return formatted_integer(number ? static_cast<std::int64_t>(*number) : *integer, spec);
}

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
      if (end == std::string::npos) throw Failure("a format has an unmatched brace");
      const std::string_view field = std::string_view(format).substr(at + 1, end - at - 1);
      const std::size_t colon = std::min(field.find(':'), field.size());
      const std::string_view spec = colon < field.size() ? field.substr(colon + 1) : std::string_view();
      result += formatted_field(fields.get(field.substr(0, colon)), spec, context.budget);
      at = end;
    }
  }
  return make_text(std::move(result), context.budget);
}

Value formatted(Context& context, const Text& format, const Value& arguments) {
  const std::string_view text = format.bytes;
  const List* const list = arguments.list();
  const bool is_tuple = list && list->is_tuple;
  const std::vector<Value> values = is_tuple ? list->items : std::vector<Value>{arguments};
  std::size_t used = 0;
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t percent = std::min(text.find('%', at), text.size());
    context.budget.make(percent - at);
    result += text.substr(at, percent - at);
    at = percent + 1;
    if (percent == text.size()) break;
    if (at < text.size() && text[at] == '%') {
      result += '%';
      ++at;
      continue;
    }
    const FormatSpec spec = take_spec(text, at);
    if (used == values.size()) throw Failure("the format has more places than there are arguments");
    result += formatted_directive(values[used++], spec, context.budget);
  }
  // As in Python, an argument that could be a mapping for %(name)s may be unused.
  const bool may_stay = arguments.dict() || (list && !is_tuple) || arguments.is_undefined() || arguments.range();
  if (used < values.size() && !may_stay) throw Failure("the format has fewer places than there are arguments");
  return make_text(std::move(result), context.budget);
}

}  // namespace minimind::jinja
