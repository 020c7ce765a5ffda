#include "runtime/jinja/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/jinja/format_spec.h"
#include "runtime/jinja/operations.h"
#include "runtime/jinja/show.h"
#include "runtime/jinja/text.h"
#include "runtime/text/utf8.h"
#include "weights/io/quote.h"

namespace minimind::jinja {
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
  if (at != text.size()) throw Failure("the format " + minimind::quoted(text) + " is not supported");
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
    if (!named_) throw Failure("the format has the name " + minimind::quoted(name) + ", which the mapping lacks");
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
