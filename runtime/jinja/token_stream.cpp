#include "runtime/jinja/token_stream.h"

#include "weights/io/quote.h"

namespace minimind::jinja {
namespace {

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::end:
      return "the end of the template";
    case TokenKind::data:
      return "text";
    default:
      return minimind::quoted(token.text);
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
  throw SyntaxError(offset(), "found " + describe(current()) + "; wanted " + std::string(wanted));
}

}  // namespace minimind::jinja
