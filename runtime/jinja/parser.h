#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/jinja/filters.h"
#include "runtime/jinja/value.h"

// A parsed template, and its parser.

namespace minimind::jinja {

enum class ExpressionKind {
  constant,     // value
  name,         // id
  list,         // children
  tuple,        // children
  mapping,      // children: key, value, key, value ...
  attribute,    // children[0] . name
  item,         // children[0] [ children[1] ]
  slice,        // children[0] [ children[1] : children[2] : children[3] ], null if omitted
  call,         // children[0] ( arguments )
  filter,       // children[0] | name ( arguments ); builtin
  test,         // children[0] is name ( arguments ); builtin
  captured,     // the text of the surrounding filter block or set block
  negate,       // - children[0]
  plus,         // + children[0]
  logical_not,  // not children[0]
  logical_and,  // children[0] and children[1]
  logical_or,   // children[0] or children[1]
  binary,       // children[0] op children[1]
  conditional,  // children[1] if children[0] else children[2], which may be null
};

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct ArgumentExpressions {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> keywords;
  ExpressionPtr list;  // *list
};

struct Expression {
  Expression(ExpressionKind kind_, std::size_t offset_) : kind(kind_), offset(offset_) {}

  ExpressionKind kind;
  std::size_t offset;      // position in the template
  std::size_t height = 1;  // nodes from here to the farthest leaf
  std::size_t id = 0;      // of a name, its index in Template::names
  Operator op{};
  std::string name;
  const Catalogue* catalogue = nullptr;  // of a filter or test
  const Builtin* builtin = nullptr;      // null if unknown
  Value value;
  std::vector<ExpressionPtr> children;
  ArgumentExpressions arguments;
};

enum class StatementKind {
  text,
  output,        // value
  set,           // target, value
  set_block,     // target, block, value: filters around `captured` or null
  filter_block,  // value, block
  if_block,      // expressions: the conditions; bodies: one each, and one more for else
  for_loop,
  macro,       // target, function
  call_block,  // value: the call; function
  generation,  // function
  break_loop,
  continue_loop,
};

struct Statement;
using Body = std::vector<Statement>;

// Statements with a scope: what they assign is not seen outside.
struct Block {
  Body body;
  // The names that the block itself mentions. As in Jinja2, the first mention decides what a name is until the block
  // assigns to it: undefined (true) if it is an assignment outside all branches, else the template's variable.
  std::map<std::size_t, bool> hides;
};

struct Parameter {
  ExpressionPtr name;
  ExpressionPtr default_value;  // may be null
};

// A macro, the body of a call block or a generation block.
struct Function {
  std::string name;
  std::vector<Parameter> parameters;
  Block block;
  bool takes_caller = false;
};

struct ForLoop {
  ExpressionPtr target, iterable, condition;  // condition may be null
  Block block, otherwise;
};

struct Statement {
  Statement(StatementKind kind_, std::size_t offset_) : kind(kind_), offset(offset_) {}

  StatementKind kind;
  std::size_t offset;
  ExpressionPtr target;
  ExpressionPtr value;
  std::string text;  // of `text`
  std::vector<ExpressionPtr> expressions;
  std::vector<Body> bodies;
  Block block;
  std::unique_ptr<Function> function;
  std::unique_ptr<ForLoop> loop;
};

struct Template {
  Block block;
  std::vector<std::string> names;
  std::size_t loop = 0, caller = 0;  // the ids of these names
};

// Parses `source`, which must be normalized (lexer.h) and well-formed UTF-8. Throws SyntaxError for templates that
// Jinja2 rejects and for unsupported features.
Template parse(std::string_view source);

}  // namespace minimind::jinja
