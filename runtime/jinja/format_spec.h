#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/jinja/value.h"

namespace minimind::jinja {

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

}  // namespace minimind::jinja
