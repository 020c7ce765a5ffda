#include "runtime/jinja/literals.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/jinja/lexer.h"
#include "runtime/jinja/text.h"
#include "runtime/text/utf8.h"

namespace minimind::jinja {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  const char small = static_cast<char>(c | 0x20);
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : 16;
}

// The end of digits of `base` with single underscores between them, from `at` on; `at` when there are none.
std::size_t end_of_digits(std::string_view source, std::size_t at, int base, bool underscore_first) {
  std::size_t end = at;
  for (;;) {
    const bool may_skip = end > at || underscore_first;
    const std::size_t digit = end + (may_skip && end < source.size() && source[end] == '_' ? 1 : 0);
    if (digit >= source.size() || digit_value(source[digit]) >= base) return end;
    end = digit + 1;
  }
}

std::string without_underscores(std::string_view text) {
  std::string result(text);
  std::erase(result, '_');
  return result;
}

std::optional<std::size_t> end_of_float(std::string_view source, std::size_t at) {
  if (at > 0 && source[at - 1] == '.') return std::nullopt;
  std::size_t end = end_of_digits(source, at, 10, false);
  if (end == at) return std::nullopt;
  bool is_float = false;
  if (end + 1 < source.size() && source[end] == '.' && is_digit(source[end + 1])) {
    end = end_of_digits(source, end + 1, 10, false);
    is_float = true;
  }
  if (end < source.size() && (source[end] | 0x20) == 'e') {
    std::size_t exponent = end + 1;
    if (exponent < source.size() && (source[exponent] == '+' || source[exponent] == '-')) ++exponent;
    if (const std::size_t after = end_of_digits(source, exponent, 10, false); after != exponent) {
      end = after;
      is_float = true;
    }
  }
  return is_float ? std::optional(end) : std::nullopt;
}

Literal float_literal(std::string_view source, std::size_t at, std::size_t end) {
  const std::string digits = without_underscores(source.substr(at, end - at));
  double number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (parsed.ec == std::errc::result_out_of_range) {
    number = std::strtod(digits.c_str(), nullptr);
    if (number > 1) throw SyntaxError(at, "the number is too large for a float");
  }
  return {.value = number, .end = end};
}

std::optional<Literal> integer_literal(std::string_view source, std::size_t at) {
  int base = 10;
  std::size_t digits = at;
  std::size_t end = at;
  if (source[at] == '0') {
    const char letter = at + 1 < source.size() ? static_cast<char>(source[at + 1] | 0x20) : ' ';
    const int prefixed = letter == 'b' ? 2 : letter == 'o' ? 8 : letter == 'x' ? 16 : 0;
    if (prefixed && end_of_digits(source, at + 2, prefixed, true) != at + 2) {
      base = prefixed;
      digits = at + 2;
      end = end_of_digits(source, digits, base, true);
    } else {
      end = end_of_digits(source, at, 1, false);  // 00 is 0, 01 is nothing
    }
  } else if (is_digit(source[at])) {
    end = end_of_digits(source, at, 10, false);
  }
  if (end == at) return std::nullopt;
  const std::string text = without_underscores(source.substr(digits, end - digits));
  std::int64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number, base).ec != std::errc()) {
    throw SyntaxError(at, "the integer does not fit in 64 bits");
  }
  return Literal{.value = number, .end = end};
}

// An escape whose backslash is at `at`, appended to `text`; returns the byte behind it. As Python's unicode-escape.
class Escape {
 public:
  Escape(std::string_view source, std::size_t at) : source_(source), at_(at) {}

  std::size_t append_to(std::string& text) const {
    constexpr std::string_view letters = "\n\\'\"abfnrtv";
    constexpr std::array<std::string_view, letters.size()> meanings = {"",   "\\", "'",  "\"", "\a", "\b",
                                                                       "\f", "\n", "\r", "\t", "\v"};
    const char letter = source_[at_ + 1];
    if (const std::size_t known = letters.find(letter); known != std::string_view::npos) {
      text += meanings[known];
      return at_ + 2;
    }
    if (letter >= '0' && letter <= '7') return append_octal(text);
    if (letter == 'x') return append_hex(text, 2);
    if (letter == 'u') return append_hex(text, 4);
    if (letter == 'U') return append_hex(text, 8);
    if (letter == 'N') throw SyntaxError(at_, "\\N{...}, a character by its name, is not supported");
    text += '\\';
    return append_unknown(text);
  }

 private:
  std::size_t append_octal(std::string& text) const {
    std::size_t end = at_ + 1;
    char32_t value = 0;
    for (; end < std::min(at_ + 4, source_.size()) && source_[end] >= '0' && source_[end] <= '7'; ++end) {
      value = value * 8 + static_cast<char32_t>(source_[end] - '0');
    }
    append_utf8(text, value);
    return end;
  }

  std::size_t append_hex(std::string& text, std::size_t digits) const {
    char32_t value = 0;
    for (std::size_t i = at_ + 2; i < at_ + 2 + digits; ++i) {
      const int digit = i < source_.size() ? digit_value(source_[i]) : 16;
      if (digit == 16) throw SyntaxError(at_, "the escape needs " + std::to_string(digits) + " hexadecimal digits");
      value = value * 16 + static_cast<char32_t>(digit);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) throw SyntaxError(at_, "the escape is no character");
    append_utf8(text, value);
    return at_ + 2 + digits;
  }

  // Jinja turns what is not ASCII into escapes before it reads them: after a backslash they stay as they are.
  std::size_t append_unknown(std::string& text) const {
    const Utf8Char character = first_utf8(source_.substr(at_ + 1));
    const auto c = static_cast<unsigned>(character.code_point);
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else {
      std::array<char, 16> escape;
      std::snprintf(escape.data(), escape.size(), c < 0x100 ? "x%02x" : c < 0x10000 ? "u%04x" : "U%08x", c);
      text += escape.data();
    }
    return at_ + 1 + character.size;
  }

  std::string_view source_;
  std::size_t at_;
};

std::optional<Literal> string_literal(std::string_view source, std::size_t at) {
  const char quote = source[at];
  std::string text;
  for (std::size_t i = at + 1; i < source.size();) {
    if (source[i] == quote) return Literal{.value = std::move(text), .end = i + 1};
    if (source[i] != '\\') {
      text += source[i++];
    } else if (i + 1 < source.size()) {
      i = Escape(source, i).append_to(text);
    } else {
      break;
    }
  }
  throw SyntaxError(at, "the string that begins here has no end");
}

}  // namespace

std::optional<Literal> literal_at(std::string_view source, std::size_t at) {
  if (source[at] == '\'' || source[at] == '"') return string_literal(source, at);
  if (!is_digit(source[at])) return std::nullopt;
  if (const auto end = end_of_float(source, at)) return float_literal(source, at, *end);
  return integer_literal(source, at);
}

}  // namespace minimind::jinja
