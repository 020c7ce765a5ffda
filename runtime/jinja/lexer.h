#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/jinja/value.h"

namespace minimind::jinja {

// Something is wrong at byte `offset` of a template.
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

// `source` with \r\n and \r as \n and without one newline at its end, which is what Jinja lexes.
std::string normalized_source(std::string_view source);

// The tokens of a template as Jinja2 makes them with trim_blocks and lstrip_blocks, the last of kind `end`. Comments
// are left out, raw blocks are data. They point into `source`, which is normalized and well-formed UTF-8. Throws
// SyntaxError.
std::vector<Token> tokenize(std::string_view source);

}  // namespace minimind::jinja
