#include "weights/model/python_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

#include "weights/base/text.h"

namespace minimind::python {
namespace {

using Json = nlohmann::json;

bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::vector<Statement> run() {
    while (at_ < text_.size()) {
      begin_line();
      while (at_ < text_.size() && !end_of_statement()) token();
    }
    end_statement();
    return std::move(statements_);
  }

 private:
  char next(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void begin_line() {
    std::size_t indent = 0;
    for (; next() == ' ' || next() == '\t' || next() == '\f'; ++at_)
      indent = next() == '\t' ? indent / 8 * 8 + 8 : next() == '\f' ? 0 : indent + 1;
    if (statement_.tokens.empty()) statement_.indent = indent;
  }

  // Skips what is between tokens. At the end of a statement, starts the next one.
  bool end_of_statement() {
    for (;; ++at_) {
      const char c = next();
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        if (at_ == text_.size()) return true;
      }
      if (next() == '\n') {
        ++at_;
        ++line_;
        if (open_brackets_ > 0) return true;  // begin_line() skips the indent, which means nothing
        end_statement();
        return true;
      }
      const std::size_t end_of_line = next(1) == '\r' ? 2 : 1;
      if (c == '\\' && next(end_of_line) == '\n') {
        at_ += end_of_line;
        ++line_;
      } else if (c == ';' && open_brackets_ == 0) {
        const std::size_t indent = statement_.indent;
        end_statement();
        statement_.indent = indent;
      } else if (c != ' ' && c != '\t' && c != '\r' && c != '\f') {
        return at_ >= text_.size();
      }
    }
  }

  void end_statement() {
    if (!statement_.tokens.empty()) statements_.push_back(std::move(statement_));
    statement_ = {};
  }

  void add(Token::Kind kind, std::string text, std::size_t line) {
    statement_.tokens.push_back({kind, std::move(text), line});
  }

  void token() {
    const char c = next();
    if (c == '"' || c == '\'') return string("");
    if (starts_name(c)) {
      const std::size_t begin = at_;
      while (starts_name(next()) || is_digit(next())) ++at_;
      const std::string_view name = text_.substr(begin, at_ - begin);
      const bool prefix = name.size() <= 2 && name.find_first_not_of("rRbBuUfF") == std::string_view::npos;
      if (prefix && (next() == '"' || next() == '\'')) return string(name);
      return add(Token::Kind::name, std::string(name), line_);
    }
    if (is_digit(c) || (c == '.' && is_digit(next(1)))) return number();
    operation();
  }

  void number() {
    const std::size_t begin = at_;
    const bool hexadecimal = next() == '0' && (next(1) == 'x' || next(1) == 'X');
    for (;; ++at_) {
      const char c = next();
      const bool exponent_sign =
          (c == '+' || c == '-') && !hexadecimal && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
      if (!is_digit(c) && !starts_name(c) && c != '.' && !exponent_sign) break;
    }
    add(Token::Kind::number, std::string(text_.substr(begin, at_ - begin)), line_);
  }

  // Escapes other than those of quotes and the backslash stay as they are: no setting needs them.
  void string(std::string_view prefix) {
    const std::size_t line = line_;
    const char quote = next();
    const bool triple = next(1) == quote && next(2) == quote;
    at_ += triple ? 3 : 1;
    std::string value;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == quote && (!triple || (next(1) == quote && next(2) == quote))) {
        at_ += triple ? 3 : 1;
        break;
      }
      if (c == '\n') {
        if (!triple) break;  // not Python
        ++line_;
      }
      if (c == '\\' && (next(1) == quote || next(1) == '\\')) ++at_;
      value += text_[at_++];
    }
    const bool plain = prefix.find_first_of("bBfF") == std::string_view::npos;
    add(plain ? Token::Kind::string : Token::Kind::formatted_string, std::move(value), line);
  }

  void operation() {
    static constexpr std::array<std::string_view, 8> long_ones{"**", "//", "==", "!=", "<=", ">=", "->", ":="};
    std::string text(1, next());
    for (const std::string_view candidate : long_ones) {
      if (text_.substr(at_).starts_with(candidate)) text = candidate;
    }
    if (text == "(" || text == "[" || text == "{") ++open_brackets_;
    if ((text == ")" || text == "]" || text == "}") && open_brackets_ > 0) --open_brackets_;
    at_ += text.size();
    add(Token::Kind::operation, std::move(text), line_);
  }

  std::string_view text_;
  std::size_t at_ = 0, line_ = 1, open_brackets_ = 0;
  Statement statement_{};
  std::vector<Statement> statements_;
};

// Values are copied wherever they are named: those of settings are small.
constexpr std::size_t most_entries = 16, longest_string = 64;

// Thrown within this file for an expression that is not evaluated.
struct NotEvaluated {};

class Evaluator {
 public:
  Evaluator(std::span<const Token> tokens, const Values& values) : tokens_(tokens), values_(values) {}

  Json run() {
    Json value = conditional();
    if (at_ != tokens_.size()) throw NotEvaluated();
    return value;
  }

 private:
  static constexpr int most_levels = 50;

  bool is(std::string_view text) const {
    return at_ < tokens_.size() && tokens_[at_].text == text &&
           (tokens_[at_].kind == Token::Kind::operation || tokens_[at_].kind == Token::Kind::name);
  }

  bool take(std::string_view text) {
    const bool there = is(text);
    if (there) ++at_;
    return there;
  }

  void expect(std::string_view text) {
    if (!take(text)) throw NotEvaluated();
  }

  static bool truth(const Json& value) {
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_number()) return value.get<double>() != 0;
    if (value.is_string()) return !value.get_ref<const std::string&>().empty();
    return !value.empty();  // null is empty
  }

  static double number(const Json& value) {
    if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
    if (!value.is_number()) throw NotEvaluated();
    return value.get<double>();
  }

  static bool whole(const Json& value) { return value.is_number_integer() || value.is_boolean(); }

  // Python has an exception or no such number, and JSON cannot state it.
  static Json real(double value) {
    if (!std::isfinite(value)) throw NotEvaluated();
    return value;
  }

  static Json integer(double value) {
    // Beyond 2^53 a double is not exact, and no setting is that large.
    if (!(std::fabs(value) <= 9007199254740992.0)) throw NotEvaluated();
    return static_cast<std::int64_t>(value);
  }

  // True is 1.
  static bool equal(const Json& a, const Json& b) {
    const auto numeric = [](const Json& value) { return value.is_number() || value.is_boolean(); };
    return numeric(a) && numeric(b) ? number(a) == number(b) : a == b;
  }

  Json conditional() {
    if (++level_ > most_levels) throw NotEvaluated();
    Json value = disjunction();
    if (take("if")) {
      const bool chosen = truth(disjunction());
      expect("else");
      Json other = conditional();
      if (!chosen) value = std::move(other);
    }
    --level_;
    return value;
  }

  Json disjunction() {
    Json value = conjunction();
    while (take("or")) {
      Json other = conjunction();
      if (!truth(value)) value = std::move(other);
    }
    return value;
  }

  Json conjunction() {
    Json value = negation();
    while (take("and")) {
      Json other = negation();
      if (truth(value)) value = std::move(other);
    }
    return value;
  }

  Json negation() {
    bool negated = false, any = false;
    while (take("not")) negated = !negated, any = true;
    Json value = comparison();
    return any ? Json(truth(value) != negated) : value;
  }

  Json comparison() {
    Json value = sum();
    if (take("is")) {
      const bool negated = take("not");
      expect("None");
      return value.is_null() != negated;
    }
    if (take("==")) return equal(value, sum());
    if (take("!=")) return !equal(value, sum());
    if (take("<")) return number(value) < number(sum());
    if (take(">")) return number(value) > number(sum());
    if (take("<=")) return number(value) <= number(sum());
    if (take(">=")) return number(value) >= number(sum());
    return value;
  }

  Json sum() {
    Json value = product();
    for (;;) {
      if (take("+")) {
        value = arithmetic(value, product(), [](double a, double b) { return a + b; });
      } else if (take("-")) {
        value = arithmetic(value, product(), [](double a, double b) { return a - b; });
      } else {
        return value;
      }
    }
  }

  Json product() {
    Json value = factor();
    for (;;) {
      if (take("*")) {
        value = arithmetic(value, factor(), [](double a, double b) { return a * b; });
      } else if (take("/")) {
        value = real(number(value) / divisor(factor()));
      } else if (take("//")) {
        value = arithmetic(value, factor(), [](double a, double b) { return std::floor(a / divisor(b)); });
      } else if (take("%")) {
        value = arithmetic(value, factor(), [](double a, double b) { return a - b * std::floor(a / divisor(b)); });
      } else {
        return value;
      }
    }
  }

  static double divisor(double value) {
    if (value == 0) throw NotEvaluated();
    return value;
  }
  static double divisor(const Json& value) { return divisor(number(value)); }

  // The result is whole if both operands are.
  template <class Operation>
  static Json arithmetic(const Json& a, const Json& b, Operation operation) {
    const double result = operation(number(a), number(b));
    return whole(a) && whole(b) ? integer(result) : real(result);
  }

  Json factor() {
    if (++level_ > most_levels) throw NotEvaluated();
    Json value;
    const bool negative = take("-");
    if (negative || take("+")) {
      const Json operand = factor();
      const double signed_number = negative ? -number(operand) : number(operand);
      value = whole(operand) ? integer(signed_number) : Json(signed_number);
    } else {
      value = primary();
      if (take("**")) {
        const Json exponent = factor();
        const double result = std::pow(number(value), number(exponent));
        value = whole(value) && whole(exponent) && number(exponent) >= 0 ? integer(result) : real(result);
      }
    }
    --level_;
    return value;
  }

  Json primary() {
    if (at_ == tokens_.size()) throw NotEvaluated();
    const Token& token = tokens_[at_];
    if (token.kind == Token::Kind::number) return ++at_, literal(token.text);
    if (token.kind == Token::Kind::string) {
      if (token.text.size() > longest_string) throw NotEvaluated();
      return ++at_, Json(token.text);
    }
    if (take("(")) {
      Json value = conditional();
      expect(")");
      return value;
    }
    if (take("{")) return dictionary();
    if (token.kind != Token::Kind::name) throw NotEvaluated();
    return named();
  }

  static Json literal(std::string text) {
    std::erase(text, '_');
    const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    const auto whole = hexadecimal ? number_in<std::int64_t>(text.substr(2), 16) : number_in<std::int64_t>(text);
    if (whole) return *whole;
    const auto real = hexadecimal ? std::nullopt : number_in<double>(text);
    if (!real) throw NotEvaluated();
    return *real;
  }

  Json dictionary() {
    Json result = Json::object();
    while (!take("}")) {
      const Json key = conditional();
      if (!key.is_string()) throw NotEvaluated();
      expect(":");
      Json value = conditional();
      if (value.is_object() || result.size() == most_entries) throw NotEvaluated();
      result[key.get<std::string>()] = std::move(value);
      if (!is("}")) expect(",");
    }
    return result;
  }

  static Json evaluated(const Json& value) {
    if (value.is_discarded()) throw NotEvaluated();
    return value;
  }

  // A constant, a call or a known name, with dots.
  Json named() {
    std::string name = tokens_[at_++].text;
    while (is(".") && at_ + 1 < tokens_.size()) {
      name += "." + tokens_[at_ + 1].text;
      at_ += 2;
    }
    if (name == "True" || name == "False") return name == "True";
    if (name == "None") return nullptr;
    if (name == "math.pi") return std::numbers::pi;
    if (take("(")) return call(name);
    const auto known = values_.find(name);
    if (known == values_.end()) throw NotEvaluated();
    return evaluated(known->second);
  }

  Json call(const std::string& name) {
    Json argument = conditional();
    if (name == "kwargs.get" || name == "kwargs.pop") {
      Json fallback;
      const auto given = argument.is_string() ? values_.find("kwargs." + argument.get<std::string>()) : values_.end();
      if (take(",") && !is(")")) fallback = conditional();
      argument = given == values_.end() ? std::move(fallback) : evaluated(given->second);
    } else if (name == "math.ceil") {
      argument = integer(std::ceil(number(argument)));
    } else if (name == "math.floor") {
      argument = integer(std::floor(number(argument)));
    } else if (name == "int") {
      argument = integer(std::trunc(number(argument)));
    } else if (name == "math.sqrt" && number(argument) >= 0) {
      argument = std::sqrt(number(argument));
    } else if (name == "float") {
      argument = number(argument);
    } else {
      throw NotEvaluated();
    }
    take(",");
    expect(")");
    return argument;
  }

  std::span<const Token> tokens_;
  const Values& values_;
  std::size_t at_ = 0;
  int level_ = 0;
};

bool defines(const Statement& statement, std::string_view name) {
  const std::vector<Token>& tokens = statement.tokens;
  return tokens.size() >= 2 && (tokens[0].text == "class" || tokens[0].text == "def") && tokens[1].text == name;
}

}  // namespace

std::vector<Statement> read_statements(std::string_view text) {
  return Reader(text).run();
}

std::optional<Definition> find_definition(std::span<const Statement> statements, std::string_view name) {
  if (statements.empty()) return std::nullopt;
  const std::size_t indent = statements.front().indent;
  std::optional<Definition> found;
  for (std::size_t i = 0; i < statements.size(); ++i) {
    if (statements[i].indent != indent || !defines(statements[i], name)) continue;
    std::size_t end = i + 1;
    while (end < statements.size() && statements[end].indent > indent) ++end;
    found = Definition{&statements[i], statements.subspan(i + 1, end - i - 1)};
  }
  return found;
}

std::string spelling(const Definition& definition) {
  std::string text;
  const auto add = [&](const Statement& statement) {
    // A statement that is a string is a docstring.
    if (statement.tokens.size() == 1 && statement.tokens[0].kind == Token::Kind::string) return;
    for (const Token& token : statement.tokens) text += token.text + " ";
  };
  add(*definition.head);
  for (const Statement& statement : definition.body) add(statement);
  return text;
}

std::optional<Json> evaluate(std::span<const Token> expression, const Values& values) {
  try {
    return Evaluator(expression, values).run();
  } catch (const NotEvaluated&) {
    return std::nullopt;
  }
}

std::vector<std::span<const Token>> split(std::span<const Token> tokens, std::string_view separator) {
  std::vector<std::span<const Token>> parts;
  std::size_t begin = 0;
  int brackets = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    if (token.kind != Token::Kind::operation) continue;
    if (token.text == "(" || token.text == "[" || token.text == "{") ++brackets;
    if (token.text == ")" || token.text == "]" || token.text == "}") --brackets;
    if (brackets != 0 || token.text != separator) continue;
    parts.push_back(tokens.subspan(begin, i - begin));
    begin = i + 1;
  }
  parts.push_back(tokens.subspan(begin));
  return parts;
}

}  // namespace minimind::python
