#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/jinja/value.h"

namespace minimind::jinja {

// Python's str(): what {{ value }} prints. Throws Failure for functions, methods, loops and iterators, whose text in
// Python is an address.
std::string shown(const Value& value, Budget& budget);

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // a level's; without it everything is on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

// Python's json.dumps(). Throws Failure for what JSON cannot hold.
std::string to_json(const Value& value, const JsonStyle& style, Budget& budget);

inline constexpr std::size_t max_json_size = std::size_t{16} << 20;

// The value that a JSON text stands for, mappings in the order of the text. `source` begins the message of the Error
// thrown for what is no JSON, is longer than max_json_size, is nested over 150 deep or has an integer of more than 64
// bits.
Value parse_json(std::string_view text, const std::string& source);

// How a value is laid out: what stands behind the colon of {:>8.2f} or between the % and the f of %-8.2f.
struct FormatSpec {
  std::string fill = " ";  // one character
  char align = '\0';       // < > ^, = for a fill between the sign and the digits, or that of the kind of value
  char sign = '-';         // + or a space to put before what is not negative
  bool alternate = false;  // # for 0x before hexadecimal digits
  char grouping = '\0';    // , or _ between thousands
  std::size_t width = 0;
  std::optional<std::size_t> precision;
  char type = '\0';
};

// Each throws Failure for a type that is not of its kind of value, and for what is not supported.
std::string formatted_text(std::string_view text, const FormatSpec& spec, Budget& budget);
std::string formatted_integer(std::int64_t number, const FormatSpec& spec, Budget& budget);
std::string formatted_float(double number, const FormatSpec& spec, Budget& budget);

// A number of a width or a precision; at most nine digits are supported. `at` moves behind it; nothing when there is
// none.
std::optional<std::size_t> take_number(std::string_view text, std::size_t& at);

// `format % arguments`, Python's but for %c, %a and a width or precision of *.
Value formatted(Context& context, const Text& format, const Value& arguments);

// subject.format(arguments), Python's but for attributes, items and fields within fields.
Value format_fields(Context& context, const Value& subject, const Arguments& arguments);

}  // namespace minimind::jinja
