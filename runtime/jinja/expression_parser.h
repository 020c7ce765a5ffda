#pragma once

#include <optional>
#include <string_view>

#include "runtime/jinja/ast.h"
#include "runtime/jinja/token_stream.h"

namespace minimind::jinja {

// Jinja's expression grammar, from the current token on. Throws SyntaxError.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  // What may stand in a list of arguments.
  ExpressionPtr parse_expression(bool with_conditional = true);

  // One expression or several with commas between them, which are a tuple.
  ExpressionPtr parse_tuple(bool with_conditional = true);

  // What is assigned to: names, tuples of them and, in a set statement, attributes of namespaces.
  ExpressionPtr parse_target(bool with_namespace);
  // One name.
  ExpressionPtr parse_name_target();

  // `name(arguments) | ...` as it follows a pipe or begins a filter block, applied to `subject`.
  ExpressionPtr parse_filters(ExpressionPtr subject, bool starts_with_name);

  // How many for loops it stands in; within them nothing may be assigned to `loop`.
  std::size_t loops = 0;

 private:
  struct Nesting;

  ExpressionPtr parse_sequence(bool simple, bool with_conditional, bool in_parentheses, bool with_namespace);
  bool at_tuple_end() const;
  ExpressionPtr parse_conditional();
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_comparison();
  std::optional<Operator> take_comparison();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concatenation();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filter = true);
  ExpressionPtr parse_primary(bool with_namespace);
  ExpressionPtr parse_name(bool with_namespace);
  ExpressionPtr parse_string();
  ExpressionPtr parse_list();
  ExpressionPtr parse_mapping();
  ExpressionPtr parse_postfix(ExpressionPtr subject);
  ExpressionPtr parse_filters_and_tests(ExpressionPtr subject);
  ExpressionPtr parse_test(ExpressionPtr subject);
  ExpressionPtr parse_subscript(ExpressionPtr subject);
  ExpressionPtr parse_subscribed(std::size_t offset, ExpressionPtr& subject);
  ExpressionPtr parse_call(ExpressionPtr subject);
  ArgumentExpressions parse_arguments();
  void parse_argument(ArgumentExpressions& arguments);
  std::string parse_dotted_name();
  void mark_stored(Expression& target) const;

  TokenStream& tokens_;
  std::size_t depth_ = 0;
};

}  // namespace minimind::jinja
