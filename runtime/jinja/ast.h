#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/jinja/value.h"

// A parsed template. The parser makes it; bind_names() then assigns each name a slot of a frame.

namespace minimind::jinja {

// Slot `slot` of the frame that is `hops` functions out from the frame of the name. Functions are the template and each
// macro, each body of a call block and each condition of a for loop.
struct Variable {
  std::size_t hops = 0;
  std::size_t slot = 0;
};

// The initial value of a variable of a scope.
struct Load {
  enum class From { nothing, outer_variable, context, parameter };
  Variable variable;
  From from = From::nothing;
  Variable outer;    // of outer_variable
  std::string name;  // of context
};
using Scope = std::vector<Load>;

enum class ExpressionKind {
  constant,             // value
  name,                 // name, variable
  namespace_attribute,  // name, variable, attribute; an assignment target only
  list,                 // children
  tuple,                // children
  mapping,              // children: key, value, key, value ...
  attribute,            // children[0] . attribute
  item,                 // children[0] [ children[1] ]
  slice,                // children[0] [ children[1] : children[2] : children[3] ], null if omitted
  call,                 // children[0] ( arguments )
  filter,               // children[0] | name ( arguments )
  test,                 // children[0] is name ( arguments )
  captured,             // the text of the surrounding filter block or set block
  unary,                // operators[0] children[0]
  binary,               // children[0] operators[0] children[1]; also and, or
  comparison,           // children[0] operators[0] children[1] operators[1] children[2] ...
  concatenation,        // children[0] ~ children[1] ~ ...
  conditional,          // children[1] if children[0] else children[2], which may be null
};

enum class Operator {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  negate,
  plus,
  logical_not,
  logical_and,
  logical_or,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
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
  std::string name;
  std::string attribute;
  Value value;
  std::vector<ExpressionPtr> children;
  std::vector<Operator> operators;
  ArgumentExpressions arguments;
  Variable variable;
  bool stored = false;  // an assignment target, or a parameter
};

// Puts `child` under `parent`; null is an omitted operand. Throws SyntaxError if the tree gets too high, because it is
// evaluated by recursion.
void adopt(Expression& parent, ExpressionPtr child);
void adopt_arguments(Expression& parent, ArgumentExpressions arguments);

template <class... Children>
ExpressionPtr make_expression(ExpressionKind kind, std::size_t offset, Children... children) {
  auto expression = std::make_unique<Expression>(kind, offset);
  (adopt(*expression, std::move(children)), ...);
  return expression;
}

enum class StatementKind {
  text,
  output,        // expressions
  set,           // target, value
  set_block,     // target, scope, body, value: filters around `captured` or null
  filter_block,  // value, scope, body
  if_block,      // expressions: the conditions; bodies: one each, and one more for else
  for_loop,
  macro,       // name, target, function
  call_block,  // value: the call; function
  generation,  // function
  break_loop,
  continue_loop,
};

struct Statement;
using Body = std::vector<Statement>;

struct Parameter {
  ExpressionPtr name;
  ExpressionPtr default_value;  // may be null
};

// A macro, the body of a call block or a generation block.
struct Function {
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
  Scope scope;
  std::size_t slots = 0;
  bool mentions_caller = false;
  std::optional<Variable> caller;  // if the body uses caller
};

struct ForLoop {
  ExpressionPtr target, iterable, condition;  // condition may be null
  Body body, else_body;
  Scope scope, else_scope;
  Variable loop;
  ExpressionPtr condition_target;  // the target as a variable of the condition, which has a separate frame
  Scope condition_scope;
  std::size_t condition_slots = 0;
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
  Scope scope;
  std::unique_ptr<Function> function;
  std::unique_ptr<ForLoop> loop;
};

struct Template {
  Body body;
  Scope scope;
  std::size_t slots = 0;
};

}  // namespace minimind::jinja
