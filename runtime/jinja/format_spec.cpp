#include "runtime/jinja/format_spec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "runtime/jinja/text.h"

namespace minimind::jinja {
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

}  // namespace minimind::jinja
