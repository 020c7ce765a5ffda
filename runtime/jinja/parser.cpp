#include "runtime/jinja/parser.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "runtime/jinja/lexer.h"
#include "runtime/jinja/names.h"
#include "weights/io/quote.h"

namespace minimind::jinja {

// Jinja's expression grammar, starting at the current token. Throws SyntaxError.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  // The items of a list of arguments.
  ExpressionPtr parse_expression(bool with_conditional = true);

  // One expression, or several separated by commas, which are a tuple.
  ExpressionPtr parse_tuple(bool with_conditional = true);

  // An assignment target: names, tuples of names and, in a set statement, attributes of namespaces.
  ExpressionPtr parse_target(bool with_namespace);
  // One name.
  ExpressionPtr parse_name_target();

  // `name(arguments) | ...` after a pipe or at the start of a filter block, applied to `subject`.
  ExpressionPtr parse_filters(ExpressionPtr subject, bool starts_with_name);

  // The number of surrounding for loops; inside them `loop` cannot be assigned.
  std::size_t loops = 0;

  // Returns true if a name `caller` was parsed.
  bool found_caller = false;

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
  ExpressionPtr parse_factor();
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

namespace {

constexpr std::size_t max_expression_depth = 100;  // of brackets and signs, which are parsed by recursion

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

}  // namespace

// One more nested bracket or sign, for its lifetime.
struct ExpressionParser::Nesting {
  explicit Nesting(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.depth_ > max_expression_depth) {
      --parser_.depth_;
      throw SyntaxError(parser_.tokens_.offset(), "brackets and signs are nested too deeply, expected at most " +
                                                      std::to_string(max_expression_depth) + " levels");
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
    throw SyntaxError(target.offset, "cannot assign to this, expected a name");
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
  if (target->kind != ExpressionKind::name) throw SyntaxError(target->offset, "cannot assign to this, expected a name");
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

ExpressionPtr ExpressionParser::parse_factor() {
  auto factor = parse_unary();
  if (tokens_.is_symbol("**")) throw SyntaxError(tokens_.offset(), "the operator ** is not supported");
  return factor;
}

ExpressionPtr ExpressionParser::parse_product() {
  constexpr std::array<BinarySymbol, 4> symbols = {
      {{"*", Operator::multiply}, {"/", Operator::divide}, {"//", Operator::floor_divide}, {"%", Operator::modulo}}};
  auto left = parse_factor();
  while (const BinarySymbol* const found = find_symbol(symbols, tokens_)) {
    const std::size_t offset = tokens_.take().offset;
    left = make_operation(ExpressionKind::binary, found->op, offset, std::move(left), parse_factor());
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
  if (name == "varargs" || name == "kwargs") {
    throw SyntaxError(token.offset, quote(name) + ", the other arguments of a macro, is not supported");
  }
  found_caller |= name == "caller";
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

// The part of the expression grammar in brackets or after an operand.

ExpressionPtr ExpressionParser::parse_list() {
  auto list = make_expression(ExpressionKind::list, tokens_.take().offset);
  while (!tokens_.is_symbol("]")) {
    adopt(*list, parse_expression());
    if (!tokens_.skip_symbol(",")) break;
  }
  tokens_.expect_symbol("]");
  return list;
}

ExpressionPtr ExpressionParser::parse_mapping() {
  auto mapping = make_expression(ExpressionKind::mapping, tokens_.take().offset);
  while (!tokens_.is_symbol("}")) {
    adopt(*mapping, parse_expression());
    tokens_.expect_symbol(":");
    adopt(*mapping, parse_expression());
    if (!tokens_.skip_symbol(",")) break;
  }
  tokens_.expect_symbol("}");
  return mapping;
}

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr subject) {
  for (;;) {
    if (tokens_.is_symbol(".") || tokens_.is_symbol("[")) {
      subject = parse_subscript(std::move(subject));
    } else if (tokens_.is_symbol("(")) {
      subject = parse_call(std::move(subject));
    } else {
      return subject;
    }
  }
}

ExpressionPtr ExpressionParser::parse_filters_and_tests(ExpressionPtr subject) {
  for (;;) {
    if (tokens_.is_symbol("|")) {
      subject = parse_filters(std::move(subject), false);
    } else if (tokens_.is_name("is")) {
      subject = parse_test(std::move(subject));
    } else if (tokens_.is_symbol("(")) {
      subject = parse_call(std::move(subject));
    } else {
      return subject;
    }
  }
}

std::string ExpressionParser::parse_dotted_name() {
  std::string name(tokens_.expect(TokenKind::name, "a name").text);
  while (tokens_.skip_symbol(".")) name += "." + std::string(tokens_.expect(TokenKind::name, "a name").text);
  return name;
}

ExpressionPtr ExpressionParser::parse_filters(ExpressionPtr subject, bool starts_with_name) {
  while (starts_with_name || tokens_.skip_symbol("|")) {
    starts_with_name = false;
    auto filter = make_expression(ExpressionKind::filter, tokens_.offset(), std::move(subject));
    filter->name = parse_dotted_name();
    if (tokens_.is_symbol("(")) adopt_arguments(*filter, parse_arguments());
    subject = std::move(filter);
  }
  return subject;
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr subject) {
  tokens_.take();
  const std::size_t offset = tokens_.offset();
  const bool negated = tokens_.skip_name("not");
  auto test = make_expression(ExpressionKind::test, tokens_.offset(), std::move(subject));
  test->name = parse_dotted_name();
  const bool takes_operand =
      tokens_.is(TokenKind::name) || tokens_.is(TokenKind::literal) || tokens_.is_symbol("[") || tokens_.is_symbol("{");
  if (tokens_.is_symbol("(")) {
    adopt_arguments(*test, parse_arguments());
  } else if (takes_operand && !tokens_.is_one_of_names({"else", "or", "and"})) {
    if (tokens_.is_name("is")) throw SyntaxError(tokens_.offset(), "tests cannot be chained with 'is'");
    ArgumentExpressions arguments;
    arguments.positional.push_back(parse_postfix(parse_primary(false)));
    adopt_arguments(*test, std::move(arguments));
  }
  if (!negated) return test;
  auto negation = make_expression(ExpressionKind::unary, offset, std::move(test));
  negation->operators.push_back(Operator::logical_not);
  return negation;
}

ExpressionPtr ExpressionParser::parse_subscript(ExpressionPtr subject) {
  const Token token = tokens_.take();
  if (token.text == ".") {
    auto attribute = make_expression(ExpressionKind::attribute, token.offset, std::move(subject));
    if (tokens_.is(TokenKind::name)) {
      attribute->attribute = tokens_.take().text;
      return attribute;
    }
    if (!tokens_.is(TokenKind::literal) || !tokens_.current().value.get_if<std::int64_t>()) {
      tokens_.fail_wanting("a name or an index");
    }
    auto index = make_expression(ExpressionKind::constant, tokens_.offset());
    index->value = tokens_.take().value;
    attribute->kind = ExpressionKind::item;
    adopt(*attribute, std::move(index));
    return attribute;
  }
  // Two or more subscripts are a tuple.
  auto tuple = make_expression(ExpressionKind::tuple, tokens_.offset());
  if (!tokens_.is_symbol("]")) {
    ExpressionPtr item = parse_subscribed(token.offset, subject);
    if (tokens_.skip_symbol("]")) return item;
    if (item->kind == ExpressionKind::slice) tokens_.fail_wanting("']'");
    subject = std::move(item->children[0]);
    adopt(*tuple, std::move(item->children[1]));
    while (tokens_.skip_symbol(",") && !tokens_.is_symbol("]")) adopt(*tuple, parse_expression());
  }
  tokens_.expect_symbol("]");
  return make_expression(ExpressionKind::item, token.offset, std::move(subject), std::move(tuple));
}

ExpressionPtr ExpressionParser::parse_subscribed(std::size_t offset, ExpressionPtr& subject) {
  const auto at_end = [&] { return tokens_.is_symbol("]") || tokens_.is_symbol(",") || tokens_.is_symbol(":"); };
  ExpressionPtr start = tokens_.is_symbol(":") ? nullptr : parse_expression();
  if (!tokens_.skip_symbol(":")) {
    return make_expression(ExpressionKind::item, offset, std::move(subject), std::move(start));
  }
  ExpressionPtr stop = at_end() ? nullptr : parse_expression();
  ExpressionPtr step = tokens_.skip_symbol(":") && !at_end() ? parse_expression() : nullptr;
  return make_expression(ExpressionKind::slice, offset, std::move(subject), std::move(start), std::move(stop),
                         std::move(step));
}

ExpressionPtr ExpressionParser::parse_call(ExpressionPtr subject) {
  auto call = make_expression(ExpressionKind::call, tokens_.offset(), std::move(subject));
  adopt_arguments(*call, parse_arguments());
  return call;
}

ArgumentExpressions ExpressionParser::parse_arguments() {
  tokens_.expect_symbol("(");
  ArgumentExpressions arguments;
  while (!tokens_.is_symbol(")")) {
    parse_argument(arguments);
    if (!tokens_.skip_symbol(",")) break;
  }
  tokens_.expect_symbol(")");
  return arguments;
}

void ExpressionParser::parse_argument(ArgumentExpressions& arguments) {
  const std::size_t offset = tokens_.offset();
  const auto require = [&](bool fits) {
    if (!fits) throw SyntaxError(offset, "this argument cannot follow those before it");
  };
  if (tokens_.is_symbol("**")) throw SyntaxError(offset, "arguments taken from a mapping are not supported");
  if (tokens_.skip_symbol("*")) {
    require(!arguments.list);
    arguments.list = parse_expression();
  } else if (tokens_.is(TokenKind::name) && tokens_.next().kind == TokenKind::symbol && tokens_.next().text == "=") {
    std::string name(tokens_.take().text);
    for (const auto& [known, value] : arguments.keywords) {
      if (known == name) throw SyntaxError(offset, "the argument " + quote(name) + " is repeated");
    }
    tokens_.take();
    arguments.keywords.emplace_back(std::move(name), parse_expression());
  } else {
    require(!arguments.list && arguments.keywords.empty());
    arguments.positional.push_back(parse_expression());
  }
}

namespace {

constexpr std::size_t max_block_depth = 100;  // blocks are parsed and run by recursion

using EndNames = std::initializer_list<std::string_view>;

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize(source)) {}

  Template run() {
    Template result;
    result.body = parse_body({});
    bind_names(result);
    return result;
  }

 private:
  // Parses statements up to the tag whose name is in `end_names`, which is then the current token, or, without end
  // names, up to the end of the template.
  Body parse_body(EndNames end_names) {
    Body body;
    while (!tokens_.is(TokenKind::end)) {
      if (tokens_.is(TokenKind::data)) {
        Token token = tokens_.take();
        body.emplace_back(StatementKind::text, token.offset).text = token.value.text()->bytes;
      } else if (tokens_.is(TokenKind::variable_begin)) {
        Statement& output = body.emplace_back(StatementKind::output, tokens_.take().offset);
        output.expressions.push_back(expressions_.parse_tuple());
        tokens_.expect(TokenKind::variable_end, "'}}'");
      } else {
        tokens_.take();  // {%
        if (tokens_.is_one_of_names(end_names)) return body;
        body.push_back(parse_statement());
        tokens_.expect(TokenKind::block_end, "'%}'");
      }
    }
    if (end_names.size() > 0) tokens_.fail_wanting("{% " + std::string(*(end_names.end() - 1)) + " %}");
    return body;
  }

  // Parses the body of a block, starting before the end of its opening tag.
  Body parse_block_body(EndNames end_names) {
    if (++block_depth_ > max_block_depth) {
      throw SyntaxError(tokens_.offset(), "blocks are nested too deeply, expected at most " +
                                              std::to_string(max_block_depth) + " levels");
    }
    tokens_.skip_symbol(":");
    tokens_.expect(TokenKind::block_end, "'%}'");
    Body body = parse_body(end_names);
    --block_depth_;
    return body;
  }

  Body parse_closed_body(std::string_view end_name) {
    Body body = parse_block_body({end_name});
    tokens_.take();
    return body;
  }

  Statement parse_statement() {
    struct Tag {
      std::string_view name;
      Statement (Parser::*parse)(std::size_t offset);
    };
    static constexpr std::array<Tag, 9> tags = {{{"if", &Parser::parse_if},
                                                 {"for", &Parser::parse_for},
                                                 {"set", &Parser::parse_set},
                                                 {"macro", &Parser::parse_macro},
                                                 {"call", &Parser::parse_call},
                                                 {"filter", &Parser::parse_filter},
                                                 {"generation", &Parser::parse_generation},
                                                 {"break", &Parser::parse_loop_control},
                                                 {"continue", &Parser::parse_loop_control}}};
    if (!tokens_.is(TokenKind::name)) tokens_.fail_wanting("the name of a tag");
    const Token name = tokens_.current();
    for (const Tag& tag : tags) {
      if (tag.name != name.text) continue;
      if (name.text != "break" && name.text != "continue") tokens_.take();
      return (this->*tag.parse)(name.offset);
    }
    reject(name.offset);
  }

  [[noreturn]] void reject(std::size_t offset) const {
    const bool is_known =
        tokens_.is_one_of_names({"block", "extends", "include", "import", "from", "autoescape", "with", "print"});
    throw SyntaxError(offset, (is_known ? "unsupported tag " : "unknown tag ") + quote(tokens_.current().text));
  }

  Statement parse_if(std::size_t offset) {
    Statement statement(StatementKind::if_block, offset);
    for (;;) {
      statement.expressions.push_back(expressions_.parse_tuple(false));
      statement.bodies.push_back(parse_block_body({"elif", "else", "endif"}));
      const std::string_view end = tokens_.take().text;
      if (end == "else") statement.bodies.push_back(parse_closed_body("endif"));
      if (end != "elif") return statement;
    }
  }

  Statement parse_for(std::size_t offset) {
    Statement statement(StatementKind::for_loop, offset);
    statement.loop = std::make_unique<ForLoop>();
    ForLoop& loop = *statement.loop;
    ++expressions_.loops;
    loop.target = expressions_.parse_target(false);
    loop.condition_target = copy_of(*loop.target);
    tokens_.expect_name("in");
    loop.iterable = expressions_.parse_tuple(false);
    if (tokens_.skip_name("if")) loop.condition = expressions_.parse_expression();
    if (tokens_.is_name("recursive")) throw SyntaxError(tokens_.offset(), "recursive loops are not supported");
    const std::size_t outer_breakable = std::exchange(breakable_loops_, breakable_loops_ + 1);
    loop.body = parse_block_body({"else", "endfor"});
    breakable_loops_ = outer_breakable;
    if (tokens_.take().text == "else") loop.else_body = parse_closed_body("endfor");
    --expressions_.loops;
    return statement;
  }

  static ExpressionPtr copy_of(const Expression& target) {
    auto copy = std::make_unique<Expression>(target.kind, target.offset);
    copy->name = target.name;
    copy->stored = target.stored;
    for (const auto& child : target.children) copy->children.push_back(copy_of(*child));
    return copy;
  }

  Statement parse_set(std::size_t offset) {
    Statement statement(StatementKind::set, offset);
    statement.target = expressions_.parse_target(true);
    if (tokens_.skip_symbol("=")) {
      statement.value = expressions_.parse_tuple();
      return statement;
    }
    statement.kind = StatementKind::set_block;
    statement.value = expressions_.parse_filters(make_expression(ExpressionKind::captured, tokens_.offset()), false);
    statement.bodies.push_back(parse_closed_body("endset"));
    return statement;
  }

  Statement parse_filter(std::size_t offset) {
    Statement statement(StatementKind::filter_block, offset);
    statement.value = expressions_.parse_filters(make_expression(ExpressionKind::captured, tokens_.offset()), true);
    statement.bodies.push_back(parse_closed_body("endfilter"));
    return statement;
  }

  void parse_parameters(Function& function) {
    tokens_.expect_symbol("(");
    while (!tokens_.is_symbol(")")) {
      if (!function.parameters.empty()) tokens_.expect_symbol(",");
      Parameter parameter{.name = expressions_.parse_name_target(), .default_value = {}};
      for (const Parameter& other : function.parameters) {
        if (other.name->name == parameter.name->name) {
          throw SyntaxError(parameter.name->offset, "two parameters are called " + quote(other.name->name));
        }
      }
      if (tokens_.skip_symbol("=")) {
        parameter.default_value = expressions_.parse_expression();
      } else if (!function.parameters.empty() && function.parameters.back().default_value) {
        throw SyntaxError(parameter.name->offset, "a parameter without a default follows one with a default");
      }
      function.parameters.push_back(std::move(parameter));
    }
    tokens_.expect_symbol(")");
  }

  // The body of a function, which no break in it can leave.
  Body parse_function_body(std::string_view end_name) {
    const std::size_t outer_breakable = std::exchange(breakable_loops_, 0);
    Body body = parse_closed_body(end_name);
    breakable_loops_ = outer_breakable;
    return body;
  }

  Statement parse_macro(std::size_t offset) {
    Statement statement(StatementKind::macro, offset);
    statement.function = std::make_unique<Function>();
    statement.target = expressions_.parse_name_target();
    statement.function->name = statement.target->name;
    parse_parameters(*statement.function);
    const bool outer_found = std::exchange(expressions_.found_caller, false);
    statement.function->body = parse_function_body("endmacro");
    statement.function->mentions_caller = expressions_.found_caller;
    expressions_.found_caller |= outer_found;
    return statement;
  }

  Statement parse_call(std::size_t offset) {
    Statement statement(StatementKind::call_block, offset);
    statement.function = std::make_unique<Function>();
    statement.function->name = "caller";
    if (tokens_.is_symbol("(")) parse_parameters(*statement.function);
    const std::size_t call_offset = tokens_.offset();
    statement.value = expressions_.parse_expression();
    if (statement.value->kind != ExpressionKind::call)
      throw SyntaxError(call_offset, "a call block requires a call here");
    statement.function->body = parse_function_body("endcall");
    return statement;
  }

  Statement parse_generation(std::size_t offset) {
    Statement statement(StatementKind::generation, offset);
    statement.function = std::make_unique<Function>();
    statement.function->name = "caller";
    statement.function->body = parse_function_body("endgeneration");
    return statement;
  }

  Statement parse_loop_control(std::size_t offset) {
    const std::string_view name = tokens_.take().text;
    if (breakable_loops_ == 0) throw SyntaxError(offset, quote(name) + " is not in a for loop");
    return {name == "break" ? StatementKind::break_loop : StatementKind::continue_loop, offset};
  }

  TokenStream tokens_;
  ExpressionParser expressions_{tokens_};
  std::size_t block_depth_ = 0;
  std::size_t breakable_loops_ = 0;
};

}  // namespace

Template parse(std::string_view source) {
  return Parser(source).run();
}

}  // namespace minimind::jinja
