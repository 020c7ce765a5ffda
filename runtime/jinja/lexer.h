#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
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
  Value value;            // of data (a text) and of a literal (a text or an integer)
  std::size_t offset;     // in the source
};

// Returns `source` with \r\n and \r as \n and without one newline at its end: the text that Jinja lexes.
std::string normalized_source(std::string_view source);

// Returns the tokens of a template as Jinja2 does with trim_blocks and lstrip_blocks, the last of kind `end`. Comments
// are omitted, raw blocks are data. Tokens point into `source`, which must be normalized and well-formed UTF-8. Throws
// SyntaxError.
std::vector<Token> tokenize(std::string_view source);

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
  // Returns whether the current token is this name or symbol.
  bool is(std::string_view text) const {
    return (is(TokenKind::name) || is(TokenKind::symbol)) && current().text == text;
  }
  bool is_one_of(std::initializer_list<std::string_view> texts) const {
    return std::any_of(texts.begin(), texts.end(), [this](std::string_view text) { return is(text); });
  }

  bool skip(std::string_view text) {
    const bool found = is(text);
    if (found) take();
    return found;
  }

  Token expect(TokenKind kind, std::string_view wanted);
  void expect(std::string_view text);

  // Throws SyntaxError: the current token is not the expected one.
  [[noreturn]] void fail_wanting(std::string_view wanted) const;

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace minimind::jinja
