#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace minimind::python {

struct Token {
  enum class Kind { name, number, string, formatted_string, operation };
  Kind kind;
  std::string text;  // of a string: its value
  std::size_t line;
};

// A statement on one or more lines. What follows a colon on the same line is a part of it.
struct Statement {
  std::size_t indent;  // columns
  std::vector<Token> tokens;
};

// Returns the statements of a Python file in order, without comments. Text that is not Python gives some statements,
// too: nothing of the language is checked.
std::vector<Statement> read_statements(std::string_view text);

// A class or function with the statements of its body, which follow `head`.
struct Definition {
  const Statement* head;
  std::span<const Statement> body;
};

// Returns the class or function of this name that is not within another one; of several the last, as Python does.
std::optional<Definition> find_definition(std::span<const Statement> statements, std::string_view name);

// Returns all tokens of a definition, one space between two, so that layout and comments make no difference.
std::string spelling(const Definition& definition);

// What an expression may refer to, by name: parameters as `x`, attributes as `self.x`, keyword arguments as `kwargs.x`.
// One that is given, but not evaluated, is Json's `discarded`.
using Values = std::map<std::string, nlohmann::json, std::less<>>;

// Returns the value of an expression of literals, arithmetic, comparisons, `a if b else c`, dict displays, math.ceil,
// math.floor, math.sqrt, math.pi, int, float and `kwargs.get("x", default)`, which is the default if `values` has no
// kwargs.x. Returns std::nullopt for anything else. None is null.
std::optional<nlohmann::json> evaluate(std::span<const Token> expression, const Values& values);

// Returns the parts of `tokens` that a separator, outside of all brackets, divides.
std::vector<std::span<const Token>> split(std::span<const Token> tokens, std::string_view separator);

}  // namespace minimind::python
