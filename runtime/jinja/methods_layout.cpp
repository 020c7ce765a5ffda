#include <algorithm>

#include "runtime/jinja/builtins.h"
#include "runtime/jinja/operations.h"
#include "runtime/jinja/text.h"
#include "runtime/text/unicode.h"
#include "runtime/text/utf8.h"

// The methods of texts that lay them out or take them apart, seldom met in chat templates.

namespace minimind::jinja {
namespace {

const std::string& bytes_of(const Value& subject) {
  return string_argument(subject, "what a method is called on").bytes;
}

std::string filled(std::string_view fill, std::size_t count) {
  std::string result;
  result.reserve(fill.size() * count);
  for (std::size_t i = 0; i < count; ++i) result += fill;
  return result;
}

enum class Side { left, right, both };

// str.ljust, str.rjust and str.center: `side` is where the text stands.
template <Side side>
Value justified(Context& context, const Value& subject, const Bound& arguments) {
  const Text& text = string_argument(subject, "what a method is called on");
  const std::int64_t width = integer_argument(arguments.at(0), "the width");
  const std::string fill = arguments.get(1) ? string_argument(arguments.at(1), "the filling").bytes : " ";
  if (count_characters(fill) != 1) throw Failure("the filling is not one character");
  const auto length = static_cast<std::int64_t>(text.length);
  if (width <= length) return make_text(text.bytes, context.budget);
  const auto missing = static_cast<std::size_t>(width - length);
  context.budget.make(missing);
  context.budget.make(missing * fill.size());
  const std::size_t both = missing / 2 + (missing & static_cast<std::size_t>(width) & 1);
  const std::size_t before = side == Side::left ? 0 : side == Side::right ? missing : both;
  return make_text(filled(fill, before) + text.bytes + filled(fill, missing - before), context.budget);
}

Value zero_filled(Context& context, const Value& subject, const Bound& arguments) {
  const Text& text = string_argument(subject, "what a method is called on");
  const std::int64_t missing = std::max<std::int64_t>(integer_argument(arguments.at(0), "the width"), 0) -
                               static_cast<std::int64_t>(text.length);
  if (missing <= 0) return make_text(text.bytes, context.budget);
  context.budget.make(static_cast<std::size_t>(missing));
  const std::size_t sign = text.bytes.starts_with('+') || text.bytes.starts_with('-') ? 1 : 0;
  std::string result = text.bytes;
  result.insert(sign, static_cast<std::size_t>(missing), '0');
  return make_text(std::move(result), context.budget);
}

template <bool from_end>
Value partitioned(Context& context, const Value& subject, const Bound& arguments) {
  const std::string& text = bytes_of(subject);
  const std::string& separator = string_argument(arguments.at(0), "the separator").bytes;
  if (separator.empty()) throw Failure("the separator is empty");
  context.budget.scan(text.size());
  const auto found = from_end ? find_last(text, separator, context.budget) : find_first(text, separator);
  const auto part = [&](std::string piece) { return make_text(std::move(piece), context.budget); };
  if (!found) {
    if (from_end) return make_tuple({part(""), part(""), part(text)}, context.budget);
    return make_tuple({part(text), part(""), part("")}, context.budget);
  }
  return make_tuple({part(text.substr(0, *found)), part(separator), part(text.substr(*found + separator.size()))},
                    context.budget);
}

Value with_tabs_expanded(Context& context, const Value& subject, const Bound& arguments) {
  const std::string& text = bytes_of(subject);
  const std::int64_t given = arguments.get(0) ? integer_argument(arguments.at(0), "the width of a tab") : 8;
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(given, 0));
  context.budget.make(text.size());
  std::string result;
  std::size_t column = 0;
  for (const std::string_view character : characters_of(text)) {
    if (character == "\t") {
      const std::size_t spaces = width == 0 ? 0 : width - column % width;
      context.budget.make(spaces);
      result.append(spaces, ' ');
      column += spaces;
    } else {
      result += character;
      column = character == "\n" || character == "\r" ? 0 : column + 1;
    }
  }
  return make_text(std::move(result), context.budget);
}

template <bool (*holds)(char32_t)>
Value all_are(Context& context, const Value& subject, const Bound&) {
  const std::string& text = bytes_of(subject);
  context.budget.make(text.size() * sizeof(std::string_view));
  const std::vector<std::string_view> all = characters_of(text);
  return !all.empty() && std::all_of(all.begin(), all.end(), [](std::string_view character) {
    return holds(first_utf8(character).code_point);
  });
}

bool is_letter(char32_t c) {
  return class_of(c) == CharClass::letter;
}

// Which of the numbers beyond ASCII are digits is not in the tables here.
bool is_ascii_digit(char32_t c) {
  if (c >= 0x80 && class_of(c) == CharClass::number) {
    throw Failure("asking for the kind of digits that are not ASCII is not supported");
  }
  return c >= '0' && c <= '9';
}

bool is_letter_or_number(char32_t c) {
  return class_of(c) == CharClass::letter || class_of(c) == CharClass::number;
}

Value is_ascii(Context&, const Value& subject, const Bound&) {
  return string_argument(subject, "what a method is called on").is_ascii();
}

}  // namespace

const std::vector<Builtin>& layout_methods() {
  static const std::vector<Builtin> table = {
      {"ljust", {"the width", "the fillchar"}, 1, justified<Side::left>},
      {"rjust", {"the width", "the fillchar"}, 1, justified<Side::right>},
      {"center", {"the width", "the fillchar"}, 1, justified<Side::both>},
      {"zfill", {"the width"}, 1, zero_filled},
      {"partition", {"the sep"}, 1, partitioned<false>},
      {"rpartition", {"the sep"}, 1, partitioned<true>},
      {"expandtabs", {"tabsize"}, 0, with_tabs_expanded},
      {"isalpha", {}, 0, all_are<is_letter>},
      {"isalnum", {}, 0, all_are<is_letter_or_number>},
      {"isdigit", {}, 0, all_are<is_ascii_digit>},
      {"isdecimal", {}, 0, all_are<is_ascii_digit>},
      {"isascii", {}, 0, is_ascii},
  };
  return table;
}

}  // namespace minimind::jinja
