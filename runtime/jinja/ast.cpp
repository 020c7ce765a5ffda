#include "runtime/jinja/ast.h"

#include "runtime/jinja/lexer.h"

namespace minimind::jinja {
namespace {

constexpr std::size_t max_height = 400;

void raise_over(Expression& parent, const ExpressionPtr& child) {
  if (!child) return;
  parent.height = std::max(parent.height, child->height + 1);
  if (parent.height > max_height) {
    throw SyntaxError(child->offset, "the expression is nested too deeply, expected at most " +
                                         std::to_string(max_height) + " levels");
  }
}

}  // namespace

void adopt(Expression& parent, ExpressionPtr child) {
  raise_over(parent, child);
  parent.children.push_back(std::move(child));
}

void adopt_arguments(Expression& parent, ArgumentExpressions arguments) {
  for (const auto& argument : arguments.positional) raise_over(parent, argument);
  for (const auto& [name, argument] : arguments.keywords) raise_over(parent, argument);
  raise_over(parent, arguments.list);
  parent.arguments = std::move(arguments);
}

}  // namespace minimind::jinja
