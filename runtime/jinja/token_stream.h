#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/jinja/lexer.h"

namespace minimind::jinja {

// The tokens of a template, read one by one. There is always a current one; the last is of kind `end`.
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

  // Throws SyntaxError: the current token is not what is wanted.
  [[noreturn]] void fail_wanting(std::string_view wanted) const;

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace minimind::jinja
