#include "runtime/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/jinja/text.h"
#include "runtime/text/unicode.h"
#include "runtime/text/utf8.h"
#include "weights/io/quote.h"

namespace minimind::jinja {
namespace {

constexpr std::string_view block_begin = "{%";
constexpr std::string_view variable_begin = "{{";
constexpr std::string_view comment_begin = "{#";

std::size_t skip_space(std::string_view source, std::size_t at) {
  while (at < source.size()) {
    const Utf8Char character = first_utf8(source.substr(at));
    if (!is_python_space(character.code_point)) break;
    at += character.size;
  }
  return at;
}

std::string_view without_space_at_end(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char character = last_utf8(text);
    if (!is_python_space(character.code_point)) break;
    text.remove_suffix(character.size);
  }
  return text;
}

char closing_of(char opening) {
  return opening == '(' ? ')' : opening == '[' ? ']' : '}';
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) lex_outside();
    tokens_.push_back({.kind = TokenKind::end, .text = {}, .value = {}, .offset = source_.size()});
    return std::move(tokens_);
  }

 private:
  bool starts(std::string_view text, std::size_t at) const { return source_.substr(at).starts_with(text); }
  char sign_at(std::size_t at) const {
    return at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : '\0';
  }

  // Returns the end of a tag end at `at`, given its two characters, and the whitespace that belongs to it; 0 if there
  // is none.
  std::size_t end_of_tag(std::size_t at, std::string_view closing) const {
    const bool is_variable = closing == "}}";
    if (starts(closing, at)) {
      const std::size_t end = at + closing.size();
      return end + (!is_variable && end < source_.size() && source_[end] == '\n' ? 1 : 0);
    }
    const char sign = sign_at(at);
    if (sign == '\0' || !starts(closing, at + 1) || (is_variable && sign == '+')) return 0;
    return sign == '-' ? skip_space(source_, at + 1 + closing.size()) : at + 1 + closing.size();
  }

  void move_to(std::size_t at) {
    line_starting_ = source_[at - 1] == '\n';
    at_ = at;
  }

  // The text from `begin` to a tag that starts at `tag` and has this sign.
  void add_data(std::size_t begin, std::size_t tag, char sign, bool before_variable) {
    std::string_view text = source_.substr(begin, tag - begin);
    if (sign == '-') {
      text = without_space_at_end(text);
    } else if (sign != '+' && !before_variable) {
      const std::size_t line = text.rfind('\n') + 1;  // 0 if there is no newline
      if ((line > 0 || line_starting_) && skip_space(text, line) == text.size()) text = text.substr(0, line);
    }
    if (text.empty()) return;
    tokens_.push_back({.kind = TokenKind::data, .text = {}, .value = std::string(text), .offset = begin});
  }

  void lex_outside() {
    std::size_t tag = at_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos) break;
      if (starts(block_begin, tag) || starts(variable_begin, tag) || starts(comment_begin, tag)) break;
    }
    if (tag == std::string_view::npos) {
      add_data(at_, source_.size(), '+', true);
      at_ = source_.size();
      return;
    }
    const char sign = sign_at(tag + 2);
    const std::size_t inside = tag + 2 + (sign == '\0' ? 0 : 1);
    const bool is_variable = starts(variable_begin, tag);
    add_data(at_, tag, sign, is_variable);
    if (starts(comment_begin, tag)) return skip_comment(tag, inside);
    if (!is_variable && lex_raw(tag, inside)) return;
    tokens_.push_back({.kind = is_variable ? TokenKind::variable_begin : TokenKind::block_begin,
                       .text = source_.substr(tag, 2),
                       .value = {},
                       .offset = tag});
    at_ = inside;
    lex_inside(tag, is_variable);
  }

  void skip_comment(std::size_t tag, std::size_t inside) {
    for (std::size_t at = inside; at < source_.size(); ++at) {
      if (const std::size_t end = end_of_tag(at, "#}")) return move_to(end);
    }
    if (inside != source_.size()) throw SyntaxError(tag, "the comment that starts here has no end");
    at_ = inside;  // Jinja2 allows this end of a template
  }

  // {% raw %}: everything up to {% endraw %} is data.
  bool lex_raw(std::size_t tag, std::size_t inside) {
    std::size_t at = skip_space(source_, inside);
    if (!starts("raw", at)) return false;
    at = skip_space(source_, at + 3);
    if (starts("%}", at)) {
      at += 2;
    } else if (starts("-%}", at)) {
      at = skip_space(source_, at + 3);
    } else {
      return false;
    }
    move_to(at);
    for (std::size_t end = source_.find(block_begin, at); end != std::string_view::npos;
         end = source_.find(block_begin, end + 1)) {
      const char sign = sign_at(end + 2);
      std::size_t after = skip_space(source_, end + 2 + (sign == '\0' ? 0 : 1));
      if (!starts("endraw", after)) continue;
      after = end_of_tag(skip_space(source_, after + 6), "%}");
      if (after == 0) continue;
      add_data(at, end, sign, false);
      move_to(after);
      return true;
    }
    if (at != source_.size()) throw SyntaxError(tag, "the raw block that starts here has no end");
    return true;
  }

  void lex_inside(std::size_t tag, bool is_variable) {
    std::vector<char> open;
    while (at_ < source_.size()) {
      if (open.empty()) {
        if (const std::size_t end = end_of_tag(at_, is_variable ? "}}" : "%}")) {
          tokens_.push_back({.kind = is_variable ? TokenKind::variable_end : TokenKind::block_end,
                             .text = is_variable ? "}}" : "%}",
                             .value = {},
                             .offset = at_});
          return move_to(end);
        }
      }
      if (const std::size_t end = skip_space(source_, at_); end != at_) {
        at_ = end;
      } else if (!lex_literal() && !lex_name()) {
        lex_symbol(open);
      }
    }
    throw SyntaxError(tag, "the tag that starts here has no end");
  }

  bool lex_literal() {
    auto literal = literal_at(source_, at_);
    if (!literal) return false;
    tokens_.push_back({.kind = TokenKind::literal,
                       .text = source_.substr(at_, literal->end - at_),
                       .value = std::move(literal->value),
                       .offset = at_});
    at_ = literal->end;
    return true;
  }

  bool lex_name() {
    std::size_t end = at_;
    while (end < source_.size()) {
      const Utf8Char character = first_utf8(source_.substr(end));
      if (!is_word_character(character.code_point)) break;
      end += character.size;
    }
    if (end == at_) return false;
    const char32_t first = first_utf8(source_.substr(at_)).code_point;
    const std::string_view name = source_.substr(at_, end - at_);
    if (first != '_' && class_of(first) != CharClass::letter) {
      throw SyntaxError(at_, quote(name) + " is not a name");
    }
    tokens_.push_back({.kind = TokenKind::name, .text = name, .value = {}, .offset = at_});
    at_ = end;
    return true;
  }

  void lex_symbol(std::vector<char>& open) {
    constexpr std::array<std::string_view, 6> pairs = {"//", "**", "==", "!=", ">=", "<="};
    constexpr std::string_view singles = "+-/*%~[](){}><=.:|,;";
    const auto pair = std::find_if(pairs.begin(), pairs.end(), [&](std::string_view p) { return starts(p, at_); });
    const char symbol = source_[at_];
    if (pair == pairs.end() && singles.find(symbol) == std::string_view::npos) {
      throw SyntaxError(at_, "unexpected " + quote(source_.substr(at_, first_utf8(source_.substr(at_)).size)));
    }
    if (symbol == '(' || symbol == '[' || symbol == '{') {
      open.push_back(closing_of(symbol));
    } else if (symbol == ')' || symbol == ']' || symbol == '}') {
      if (open.empty() || open.back() != symbol) {
        throw SyntaxError(at_, std::string("unexpected '") + symbol + "'" +
                                   (open.empty() ? "" : std::string(", expected '") + open.back() + "'"));
      }
      open.pop_back();
    }
    const std::size_t size = pair == pairs.end() ? 1 : 2;
    tokens_.push_back({.kind = TokenKind::symbol, .text = source_.substr(at_, size), .value = {}, .offset = at_});
    at_ += size;
  }

  std::string_view source_;
  std::size_t at_ = 0;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::string normalized_source(std::string_view source) {
  std::string result;
  result.reserve(source.size());
  for (std::size_t at = 0; at < source.size(); ++at) {
    if (source[at] != '\r') {
      result += source[at];
    } else if (at + 1 == source.size() || source[at + 1] != '\n') {
      result += '\n';
    }
  }
  if (result.ends_with('\n')) result.pop_back();
  return result;
}

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  const char small = static_cast<char>(c | 0x20);
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : 16;
}

// Returns the end of the decimal digits that start at `at`; `at` if there are none.
std::size_t end_of_digits(std::string_view source, std::size_t at) {
  return std::min(source.find_first_not_of("0123456789", at), source.size());
}

std::optional<std::size_t> end_of_float(std::string_view source, std::size_t at) {
  if (at > 0 && source[at - 1] == '.') return std::nullopt;
  std::size_t end = end_of_digits(source, at);
  if (end == at) return std::nullopt;
  bool has_point_or_exponent = false;
  if (end + 1 < source.size() && source[end] == '.' && is_digit(source[end + 1])) {
    end = end_of_digits(source, end + 1);
    has_point_or_exponent = true;
  }
  if (end < source.size() && (source[end] | 0x20) == 'e') {
    std::size_t exponent = end + 1;
    if (exponent < source.size() && (source[exponent] == '+' || source[exponent] == '-')) ++exponent;
    if (const std::size_t after = end_of_digits(source, exponent); after != exponent) {
      end = after;
      has_point_or_exponent = true;
    }
  }
  return has_point_or_exponent ? std::optional(end) : std::nullopt;
}

Literal float_literal(std::string_view source, std::size_t at, std::size_t end) {
  const std::string digits(source.substr(at, end - at));
  double number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (parsed.ec == std::errc::result_out_of_range) {
    number = std::strtod(digits.c_str(), nullptr);
    if (number > 1) throw SyntaxError(at, "the number is too large for a float");
  }
  return {.value = number, .end = end};
}

Literal integer_literal(std::string_view source, std::size_t at) {
  std::size_t end = end_of_digits(source, at);
  if (source[at] == '0') end = std::min(source.find_first_not_of('0', at), source.size());  // 00 is 0, 01 is invalid
  std::int64_t number = 0;
  if (std::from_chars(source.data() + at, source.data() + end, number).ec != std::errc()) {
    throw SyntaxError(at, "the integer does not fit in 64 bits");
  }
  if (end < source.size() && is_word_character(static_cast<unsigned char>(source[end]))) {
    throw SyntaxError(at, "a number that is not written in decimal digits alone is not supported");
  }
  return {.value = number, .end = end};
}

// Appends the escape whose backslash is at `at` to `text`, as Python's unicode-escape; returns the byte after it.
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
    if (letter >= '0' && letter <= '7') throw SyntaxError(at_, "an octal escape is not supported");
    if (letter == 'x') return append_hex(text, 2);
    if (letter == 'u') return append_hex(text, 4);
    if (letter == 'U') return append_hex(text, 8);
    if (letter == 'N') throw SyntaxError(at_, "\\N{...}, a character by its name, is not supported");
    text += '\\';
    return append_unknown(text);
  }

 private:
  std::size_t append_hex(std::string& text, std::size_t digits) const {
    char32_t value = 0;
    for (std::size_t i = at_ + 2; i < at_ + 2 + digits; ++i) {
      const int digit = i < source_.size() ? digit_value(source_[i]) : 16;
      if (digit == 16) throw SyntaxError(at_, "the escape requires " + std::to_string(digits) + " hexadecimal digits");
      value = value * 16 + static_cast<char32_t>(digit);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
      throw SyntaxError(at_, "the escape is not a character");
    append_utf8(text, value);
    return at_ + 2 + digits;
  }

  // Jinja escapes non-ASCII characters before it reads the text: after a backslash they are unchanged.
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
  throw SyntaxError(at, "the string that starts here has no end");
}

}  // namespace

std::optional<Literal> literal_at(std::string_view source, std::size_t at) {
  if (source[at] == '\'' || source[at] == '"') return string_literal(source, at);
  if (!is_digit(source[at])) return std::nullopt;
  if (const auto end = end_of_float(source, at)) return float_literal(source, at, *end);
  return integer_literal(source, at);
}

namespace {

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::end:
      return "the end of the template";
    case TokenKind::data:
      return "text";
    default:
      return quote(token.text);
  }
}

}  // namespace

Token TokenStream::expect(TokenKind kind, std::string_view wanted) {
  if (!is(kind)) fail_wanting(wanted);
  return take();
}

void TokenStream::expect_symbol(std::string_view symbol) {
  if (!skip_symbol(symbol)) fail_wanting("'" + std::string(symbol) + "'");
}

void TokenStream::expect_name(std::string_view name) {
  if (!skip_name(name)) fail_wanting("'" + std::string(name) + "'");
}

void TokenStream::fail_wanting(std::string_view wanted) const {
  throw SyntaxError(offset(), "found " + describe(current()) + ", expected " + std::string(wanted));
}

}  // namespace minimind::jinja
