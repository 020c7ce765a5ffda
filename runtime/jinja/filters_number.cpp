#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "runtime/jinja/builtins.h"
#include "runtime/jinja/operations.h"
#include "runtime/jinja/text.h"
#include "runtime/text/unicode.h"
#include "runtime/text/utf8.h"

// The filters that make numbers.

namespace minimind::jinja {
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

}  // namespace minimind::jinja
