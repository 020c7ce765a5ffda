#include "runtime/jinja/expression_parser.h"

#include <algorithm>
#include <array>

namespace minimind::jinja {
namespace {

constexpr std::size_t max_depth = 100;  // of brackets and signs, which are parsed by recursion

ExpressionPtr make_operation(ExpressionKind kind, Operator op, std::size_t offset, ExpressionPtr left,
                             ExpressionPtr right = nullptr) {
  auto expression = make_expression(kind, offset, std::move(left));
  if (right) adopt(*expression, std::move(right));
  expression->operators.push_back(op);
  return expression;
}

struct BinarySymbol {
  std::string_view symbol;
  Operator op;
};

template <std::size_t n>
const BinarySymbol* find_symbol(const std::array<BinarySymbol, n>& table, const TokenStream& tokens) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const BinarySymbol& entry) { return tokens.is_symbol(entry.symbol); });
  return found == table.end() ? nullptr : &*found;
}

// Jinja2 folds -2 into one constant and writes -2 ** n into its Python code, where the minus comes last; where all is
// constant, it folds the power too, and right.
bool is_negative_constant(const Expression& expression) {
  return expression.kind == ExpressionKind::unary && expression.operators[0] == Operator::negate &&
         expression.children[0]->kind == ExpressionKind::constant;
}

bool mentions_variable(const Expression& expression) {
  if (expression.kind == ExpressionKind::name || expression.kind == ExpressionKind::call) return true;
  return std::any_of(expression.children.begin(), expression.children.end(),
                     [](const ExpressionPtr& child) { return child && mentions_variable(*child); });
}

}  // namespace

// One more bracket or sign inside one another, for as long as it lives.
struct ExpressionParser::Nesting {
  explicit Nesting(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.depth_ > max_depth) {
      --parser_.depth_;
      throw SyntaxError(parser_.tokens_.offset(),
                        "brackets and signs are nested more than " + std::to_string(max_depth) + " deep");
    }
  }
  ~Nesting() { --parser_.depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  ExpressionParser& parser_;
};

ExpressionPtr ExpressionParser::parse_expression(bool with_conditional) {
  const Nesting nesting(*this);
  return with_conditional ? parse_conditional() : parse_or();
}

ExpressionPtr ExpressionParser::parse_tuple(bool with_conditional) {
  return parse_sequence(false, with_conditional, false, false);
}

bool ExpressionParser::at_tuple_end() const {
  return tokens_.is(TokenKind::variable_end) || tokens_.is(TokenKind::block_end) || tokens_.is_symbol(")");
}

ExpressionPtr ExpressionParser::parse_sequence(bool simple, bool with_conditional, bool in_parentheses,
                                               bool with_namespace) {
  auto tuple = make_expression(ExpressionKind::tuple, tokens_.offset());
  bool is_tuple = false;
  while (!at_tuple_end()) {
    adopt(*tuple, simple ? parse_primary(with_namespace) : parse_expression(with_conditional));
    if (!tokens_.skip_symbol(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return tuple;
  if (!tuple->children.empty()) return std::move(tuple->children[0]);
  if (!in_parentheses) tokens_.fail_wanting("an expression");
  return tuple;
}

void ExpressionParser::mark_stored(Expression& target) const {
  if (target.kind == ExpressionKind::tuple) {
    for (const auto& child : target.children) mark_stored(*child);
  } else if (target.kind == ExpressionKind::name) {
    if (loops > 0 && target.name == "loop") throw SyntaxError(target.offset, "cannot assign to 'loop' in a for loop");
    target.stored = true;
  } else if (target.kind != ExpressionKind::namespace_attribute) {
    throw SyntaxError(target.offset, "cannot assign to this; wanted a name");
  }
}

ExpressionPtr ExpressionParser::parse_target(bool with_namespace) {
  auto target = parse_sequence(true, true, false, with_namespace);
  mark_stored(*target);
  return target;
}

ExpressionPtr ExpressionParser::parse_name_target() {
  if (!tokens_.is(TokenKind::name)) tokens_.fail_wanting("a name");
  auto target = parse_name(false);
  if (target->kind != ExpressionKind::name) throw SyntaxError(target->offset, "cannot assign to this; wanted a name");
  target->stored = true;
  return target;
}

ExpressionPtr ExpressionParser::parse_conditional() {
  const std::size_t offset = tokens_.offset();
  auto result = parse_or();
  while (tokens_.skip_name("if")) {
    auto condition = parse_or();
    auto otherwise = tokens_.skip_name("else") ? parse_expression() : nullptr;
    result = make_expression(ExpressionKind::conditional, offset, std::move(condition), std::move(result),
                             std::move(otherwise));
  }
  return result;
}

ExpressionPtr ExpressionParser::parse_or() {
  const std::size_t offset = tokens_.offset();
  auto left = parse_and();
  while (tokens_.skip_name("or")) {
    left = make_operation(ExpressionKind::binary, Operator::logical_or, offset, std::move(left), parse_and());
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_and() {
  const std::size_t offset = tokens_.offset();
  auto left = parse_not();
  while (tokens_.skip_name("and")) {
    left = make_operation(ExpressionKind::binary, Operator::logical_and, offset, std::move(left), parse_not());
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_not() {
  const std::size_t offset = tokens_.offset();
  if (!tokens_.skip_name("not")) return parse_comparison();
  const Nesting nesting(*this);
  return make_operation(ExpressionKind::unary, Operator::logical_not, offset, parse_not());
}

std::optional<Operator> ExpressionParser::take_comparison() {
  constexpr std::array<BinarySymbol, 6> symbols = {{{"==", Operator::equal},
                                                    {"!=", Operator::not_equal},
                                                    {"<", Operator::less},
                                                    {"<=", Operator::less_equal},
                                                    {">", Operator::greater},
                                                    {">=", Operator::greater_equal}}};
  if (const BinarySymbol* const found = find_symbol(symbols, tokens_)) {
    tokens_.take();
    return found->op;
  }
  if (tokens_.skip_name("in")) return Operator::in;
  if (tokens_.is_name("not") && tokens_.next().kind == TokenKind::name && tokens_.next().text == "in") {
    tokens_.take();
    tokens_.take();
    return Operator::not_in;
  }
  return std::nullopt;
}

ExpressionPtr ExpressionParser::parse_comparison() {
  const std::size_t offset = tokens_.offset();
  auto left = parse_sum();
  auto op = take_comparison();
  if (!op) return left;
  auto comparison = make_expression(ExpressionKind::comparison, offset, std::move(left));
  for (; op; op = take_comparison()) {
    comparison->operators.push_back(*op);
    adopt(*comparison, parse_sum());
  }
  return comparison;
}

ExpressionPtr ExpressionParser::parse_sum() {
  constexpr std::array<BinarySymbol, 2> symbols = {{{"+", Operator::add}, {"-", Operator::subtract}}};
  auto left = parse_concatenation();
  while (const BinarySymbol* const found = find_symbol(symbols, tokens_)) {
    const std::size_t offset = tokens_.take().offset;
    left = make_operation(ExpressionKind::binary, found->op, offset, std::move(left), parse_concatenation());
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_concatenation() {
  const std::size_t offset = tokens_.offset();
  auto first = parse_product();
  if (!tokens_.is_symbol("~")) return first;
  auto concatenation = make_expression(ExpressionKind::concatenation, offset, std::move(first));
  while (tokens_.skip_symbol("~")) adopt(*concatenation, parse_product());
  return concatenation;
}

ExpressionPtr ExpressionParser::parse_product() {
  constexpr std::array<BinarySymbol, 4> symbols = {
      {{"*", Operator::multiply}, {"/", Operator::divide}, {"//", Operator::floor_divide}, {"%", Operator::modulo}}};
  auto left = parse_power();
  while (const BinarySymbol* const found = find_symbol(symbols, tokens_)) {
    const std::size_t offset = tokens_.take().offset;
    left = make_operation(ExpressionKind::binary, found->op, offset, std::move(left), parse_power());
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_power() {
  auto left = parse_unary();
  while (tokens_.is_symbol("**")) {
    const std::size_t offset = tokens_.take().offset;
    ExpressionPtr right = parse_unary();
    const bool negates_last = is_negative_constant(*left) && mentions_variable(*right);
    ExpressionPtr base = negates_last ? std::move(left->children[0]) : std::move(left);
    left = make_operation(ExpressionKind::binary, Operator::power, offset, std::move(base), std::move(right));
    if (negates_last) left = make_operation(ExpressionKind::unary, Operator::negate, offset, std::move(left));
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_unary(bool with_filter) {
  const std::size_t offset = tokens_.offset();
  ExpressionPtr operand;
  if (tokens_.is_symbol("-") || tokens_.is_symbol("+")) {
    const Nesting nesting(*this);
    const Operator op = tokens_.take().text == "-" ? Operator::negate : Operator::plus;
    operand = make_operation(ExpressionKind::unary, op, offset, parse_unary(false));
  } else {
    operand = parse_primary(false);
  }
  operand = parse_postfix(std::move(operand));
  return with_filter ? parse_filters_and_tests(std::move(operand)) : std::move(operand);
}

ExpressionPtr ExpressionParser::parse_primary(bool with_namespace) {
  const Nesting nesting(*this);
  const Token& token = tokens_.current();
  if (token.kind == TokenKind::name) return parse_name(with_namespace);
  if (token.kind == TokenKind::literal) {
    if (token.value.text()) return parse_string();
    auto constant = make_expression(ExpressionKind::constant, token.offset);
    constant->value = tokens_.take().value;
    return constant;
  }
  if (tokens_.skip_symbol("(")) {
    auto inside = parse_sequence(false, true, true, false);
    tokens_.expect_symbol(")");
    return inside;
  }
  if (tokens_.is_symbol("[")) return parse_list();
  if (tokens_.is_symbol("{")) return parse_mapping();
  tokens_.fail_wanting("an expression");
}

ExpressionPtr ExpressionParser::parse_name(bool with_namespace) {
  const Token token = tokens_.take();
  const std::string_view name = token.text;
  const auto constant = [&](Value value) {
    auto expression = make_expression(ExpressionKind::constant, token.offset);
    expression->value = std::move(value);
    return expression;
  };
  if (name == "true" || name == "True") return constant(true);
  if (name == "false" || name == "False") return constant(false);
  if (name == "none" || name == "None") return constant(None{});
  if (name == "self") throw SyntaxError(token.offset, "'self', the blocks of a template, is not supported");
  auto expression = make_expression(ExpressionKind::name, token.offset);
  expression->name = name;
  if (with_namespace && tokens_.skip_symbol(".")) {
    expression->kind = ExpressionKind::namespace_attribute;
    expression->attribute = tokens_.expect(TokenKind::name, "the name of an attribute").text;
  }
  return expression;
}

ExpressionPtr ExpressionParser::parse_string() {
  auto constant = make_expression(ExpressionKind::constant, tokens_.offset());
  std::string text;
  while (tokens_.is(TokenKind::literal) && tokens_.current().value.text()) text += tokens_.take().value.text()->bytes;
  constant->value = std::move(text);
  return constant;
}

}  // namespace minimind::jinja
