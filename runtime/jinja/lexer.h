#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/jinja/value.h"

namespace minimind::jinja {

// An error at byte `offset` of a template.
class SyntaxError : public Failure {
 public:
  SyntaxError(std::size_t at, const std::string& message) : Failure(message), offset(at) {}
  std::size_t offset;
};

enum class TokenKind { data, variable_begin, variable_end, block_begin, block_end, name, literal, symbol, end };

struct Token {
  TokenKind kind;
  std::string_view text;  // of a name or symbol, in the source
  Value value;            // of data (a text) and of a literal (a text, an integer or a float)
  std::size_t offset;     // in the source
};

// Returns `source` with \r\n and \r as \n and without one newline at its end: the text that Jinja lexes.
std::string normalized_source(std::string_view source);

// Returns the tokens of a template as Jinja2 does with trim_blocks and lstrip_blocks, the last of kind `end`. Comments
// are omitted, raw blocks are data. Tokens point into `source`, which must be normalized and well-formed UTF-8. Throws
// SyntaxError.
std::vector<Token> tokenize(std::string_view source);

struct Literal {
  Value value;      // a text, an integer or a float
  std::size_t end;  // the byte after it
};

// Returns the string or number that starts at byte `at` of the template, if there is one. Throws SyntaxError for an
// escape that is malformed or a character's name, and for numbers that overflow 64 bits.
std::optional<Literal> literal_at(std::string_view source, std::size_t at);

// The tokens of a template, read one by one. There is always a current token; the last is of kind `end`.
class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  std::size_t offset() const { return current().offset; }

  Token take() {
    Token token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }

  bool is(TokenKind kind) const { return current().kind == kind; }
  bool is_name(std::string_view name) const { return is(TokenKind::name) && current().text == name; }
  bool is_symbol(std::string_view symbol) const { return is(TokenKind::symbol) && current().text == symbol; }
  bool is_one_of_names(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      if (is_name(name)) return true;
    }
    return false;
  }

  bool skip_name(std::string_view name) { return is_name(name) && (take(), true); }
  bool skip_symbol(std::string_view symbol) { return is_symbol(symbol) && (take(), true); }

  Token expect(TokenKind kind, std::string_view wanted);
  void expect_symbol(std::string_view symbol);
  void expect_name(std::string_view name);

  // Throws SyntaxError: the current token is not the expected one.
  [[noreturn]] void fail_wanting(std::string_view wanted) const;

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace minimind::jinja
