#include "runtime/jinja/lexer.h"

#include <array>
#include <cctype>
#include <cstdint>

#include "runtime/jinja/text.h"
#include "runtime/text/code_points.h"
#include "runtime/text/unicode.h"
#include "runtime/text/utf8.h"
#include "weights/base/text.h"

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
      text = without_end(text, is_python_space);
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
      } else if (!lex_string() && !lex_number() && !lex_name()) {
        lex_symbol(open);
      }
    }
    throw SyntaxError(tag, "the tag that starts here has no end");
  }

  // Adds the literal that ends at byte `end`.
  void add_literal(Value value, std::size_t end) {
    const std::string_view text = source_.substr(at_, end - at_);
    tokens_.push_back({.kind = TokenKind::literal, .text = text, .value = std::move(value), .offset = at_});
    at_ = end;
  }

  std::size_t end_of_digits(std::size_t at) const {
    return std::min(source_.find_first_not_of("0123456789", at), source_.size());
  }

  // Returns the end of a float whose digits before the point end at byte `end`; `end` if it is an integer.
  std::size_t end_of_float(std::size_t end) const {
    if (source_[at_ - 1] == '.') return end;  // the second index of a.0.1
    if (source_.substr(end).starts_with('.')) {
      const std::size_t fraction = end_of_digits(end + 1);
      if (fraction == end + 1) return end;
      end = fraction;
    }
    if (end == source_.size() || (source_[end] | 0x20) != 'e') return end;
    const bool is_signed = end + 1 < source_.size() && (source_[end + 1] == '+' || source_[end + 1] == '-');
    const std::size_t exponent = end_of_digits(end + (is_signed ? 2 : 1));
    return std::isdigit(static_cast<unsigned char>(source_[exponent - 1])) ? exponent : end;
  }

  bool lex_number() {
    const std::size_t whole_end = end_of_digits(at_);
    if (whole_end == at_) return false;
    const std::size_t end = end_of_float(whole_end);
    const bool is_float = end > whole_end;
    const std::string_view text = source_.substr(at_, end - at_);
    const bool has_letters = end < source_.size() && is_word_character(static_cast<unsigned char>(source_[end]));
    if (has_letters || (!is_float && source_[at_] == '0' && end > at_ + 1)) {
      throw SyntaxError(at_, "a number that is not written in decimal digits alone is not supported");
    }
    if (is_float) {
      const auto number = number_in<double>(text);
      if (!number) throw SyntaxError(at_, "the number does not fit in a float of 64 bits");
      add_literal(*number, end);
    } else {
      const auto number = number_in<std::int64_t>(text);
      if (!number) throw SyntaxError(at_, "the integer does not fit in 64 bits");
      add_literal(*number, end);
    }
    return true;
  }

  bool lex_string() {
    const char quote = source_[at_];
    if (quote != '\'' && quote != '"') return false;
    std::string text;
    for (std::size_t at = at_ + 1; at < source_.size();) {
      if (source_[at] == quote) {
        add_literal(std::move(text), at + 1);
        return true;
      }
      if (source_[at] != '\\') {
        text += source_[at++];
      } else if (at + 1 < source_.size()) {
        at = append_escape(text, at);
      } else {
        break;
      }
    }
    throw SyntaxError(at_, "the string that starts here has no end");
  }

  // Appends the escape whose backslash is at `at` to `text`, as Python's unicode-escape; returns the byte after it.
  std::size_t append_escape(std::string& text, std::size_t at) const {
    constexpr std::string_view letters = "\n\\'\"abfnrtv";
    constexpr std::array<std::string_view, letters.size()> meanings = {"",   "\\", "'",  "\"", "\a", "\b",
                                                                       "\f", "\n", "\r", "\t", "\v"};
    const char letter = source_[at + 1];
    if (const std::size_t known = letters.find(letter); known != std::string_view::npos) {
      text += meanings[known];
      return at + 2;
    }
    if (letter == 'x') return append_hex(text, at, 2);
    if (letter == 'u') return append_hex(text, at, 4);
    if (letter == 'U') return append_hex(text, at, 8);
    if (static_cast<unsigned char>(letter) >= 0x80 || letter == 'N' || (letter >= '0' && letter <= '7')) {
      throw SyntaxError(at, "an escape that is octal, not ASCII or a character's name is not supported");
    }
    text.append("\\").append(1, letter);
    return at + 2;
  }

  std::size_t append_hex(std::string& text, std::size_t at, std::size_t digits) const {
    const std::string_view hex = source_.substr(std::min(at + 2, source_.size()), digits);
    const auto value = hexadecimal(hex);
    if (hex.size() < digits || !value) {
      throw SyntaxError(at, "the escape requires " + std::to_string(digits) + " hexadecimal digits");
    }
    if (!is_scalar_value(*value)) throw SyntaxError(at, "the escape is not a character");
    append_utf8(text, *value);
    return at + 2 + digits;
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

Token TokenStream::expect(TokenKind kind, std::string_view wanted) {
  if (!is(kind)) fail_wanting(wanted);
  return take();
}

void TokenStream::expect(std::string_view text) {
  if (!skip(text)) fail_wanting("'" + std::string(text) + "'");
}

void TokenStream::fail_wanting(std::string_view wanted) const {
  const std::string found = is(TokenKind::end) ? "the end of the template" : quote(current().text);
  throw SyntaxError(offset(), "found " + found + ", expected " + std::string(wanted));
}

}  // namespace minimind::jinja
