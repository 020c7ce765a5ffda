#include "runtime/jinja/parser.h"

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>

#include "runtime/jinja/lexer.h"
#include "weights/base/text.h"

namespace minimind::jinja {
namespace {

// The limits of what is parsed and run by recursion.
constexpr std::size_t max_expression_depth = 100;  // of brackets and signs
constexpr std::size_t max_block_depth = 100;
constexpr std::size_t max_height = 400;  // of an expression

using Texts = std::initializer_list<std::string_view>;

// One level deeper for its lifetime. Throws SyntaxError at `offset` if that is too deep.
class Nesting {
 public:
  Nesting(std::size_t& depth, std::size_t limit, const char* what, std::size_t offset) : depth_(depth) {
    if (depth == limit) {
      throw SyntaxError(
          offset, std::string(what) + " are nested too deeply, expected at most " + std::to_string(limit) + " levels");
    }
    ++depth_;
  }
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  std::size_t& depth_;
};

void raise_over(Expression& parent, const ExpressionPtr& child) {
  if (!child) return;
  parent.height = std::max(parent.height, child->height + 1);
  if (parent.height > max_height) {
    throw SyntaxError(child->offset, "the expression is nested too deeply, expected at most " +
                                         std::to_string(max_height) + " levels");
  }
}

// Puts `child` under `parent`; null is an omitted operand.
void adopt(Expression& parent, ExpressionPtr child) {
  raise_over(parent, child);
  parent.children.push_back(std::move(child));
}

template <class... Children>
ExpressionPtr make_expression(ExpressionKind kind, std::size_t offset, Children... children) {
  auto expression = std::make_unique<Expression>(kind, offset);
  (adopt(*expression, std::move(children)), ...);
  return expression;
}

ExpressionPtr make_constant(std::size_t offset, Value value) {
  auto constant = make_expression(ExpressionKind::constant, offset);
  constant->value = std::move(value);
  return constant;
}

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize(source)) {}

  Template run() {
    template_.loop = id_of("loop");
    template_.caller = id_of("caller");
    template_.block = parse_in_block([&](Block& block) { block.body = parse_body({}); });
    return std::move(template_);
  }

 private:
  // Names.

  std::size_t id_of(std::string_view name) {
    const auto [known, is_new] = ids_.emplace(name, template_.names.size());
    if (is_new) template_.names.emplace_back(name);
    return known->second;
  }

  // Notes that the current block mentions the name.
  void mention(std::size_t id, bool hides) { block_->hides.emplace(id, hides); }

  // Notes that the current block assigns to the names of the target.
  void assign_to(const Expression& target) {
    if (target.kind == ExpressionKind::name) mention(target.id, branches_ == 0);
    if (target.kind == ExpressionKind::attribute) mention(target.children[0]->id, false);
    if (target.kind != ExpressionKind::tuple) return;
    for (const auto& child : target.children) assign_to(*child);
  }

  // Parses with `parse` the content of a block. In it, an unknown filter is an error.
  template <class Parse>
  Block parse_in_block(Parse parse) {
    Block block;
    Block* const outer = std::exchange(block_, &block);
    const std::size_t outer_branches = std::exchange(branches_, 0);
    const std::size_t outer_unknown = unknown_.size();
    parse(block);
    if (unknown_.size() > outer_unknown) {
      const Expression& use = *unknown_[outer_unknown];
      throw SyntaxError(use.offset, use.catalogue->missing(use.name));
    }
    branches_ = outer_branches;
    block_ = outer;
    return block;
  }

  // Expressions, as in Jinja's grammar.

  Nesting nest() { return {expression_depth_, max_expression_depth, "brackets and signs", tokens_.offset()}; }

  ExpressionPtr parse_expression(bool with_conditional = true) {
    const Nesting nesting = nest();
    return with_conditional ? parse_conditional() : parse_or();
  }

  bool at_tuple_end() const {
    return tokens_.is(TokenKind::variable_end) || tokens_.is(TokenKind::block_end) || tokens_.is(")");
  }

  // One item, or several separated by commas, which are a tuple. No item is an empty tuple in parentheses, else an
  // error.
  template <class ParseItem>
  ExpressionPtr parse_items(bool in_parentheses, ParseItem parse_item) {
    auto tuple = make_expression(ExpressionKind::tuple, tokens_.offset());
    bool is_tuple = false;
    while (!at_tuple_end()) {
      adopt(*tuple, parse_item());
      if (!tokens_.skip(",")) break;
      is_tuple = true;
    }
    if (is_tuple) return tuple;
    if (!tuple->children.empty()) return std::move(tuple->children[0]);
    if (!in_parentheses) tokens_.fail_wanting("an expression");
    return tuple;
  }

  ExpressionPtr parse_tuple(bool with_conditional = true) {
    return parse_items(false, [&] { return parse_expression(with_conditional); });
  }

  // An assignment target: names, tuples of names and, in a set statement, attributes of namespaces.
  ExpressionPtr parse_target(bool with_namespace) {
    const Nesting nesting = nest();
    return parse_items(false, [&] {
      if (tokens_.skip("(")) {
        auto target = parse_target(false);
        tokens_.expect(")");
        return target;
      }
      auto target = parse_name_target();
      if (!with_namespace || !tokens_.skip(".")) return target;
      const std::size_t offset = target->offset;
      auto attribute = make_expression(ExpressionKind::attribute, offset, std::move(target));
      attribute->name = tokens_.expect(TokenKind::name, "the name of an attribute").text;
      return attribute;
    });
  }

  // One name that is assigned to.
  ExpressionPtr parse_name_target() {
    if (!tokens_.is(TokenKind::name)) throw SyntaxError(tokens_.offset(), "cannot assign to this, expected a name");
    auto target = parse_name();
    if (target->kind != ExpressionKind::name)
      throw SyntaxError(target->offset, "cannot assign to this, expected a name");
    if (loops_ > 0 && target->name == "loop")
      throw SyntaxError(target->offset, "cannot assign to 'loop' in a for loop");
    return target;
  }

  ExpressionPtr parse_conditional() {
    const std::size_t offset = tokens_.offset();
    const std::size_t outer_unknown = unknown_.size();
    auto result = parse_or();
    while (tokens_.skip("if")) {
      auto condition = parse_or();
      auto otherwise = tokens_.skip("else") ? parse_expression() : nullptr;
      result = make_expression(ExpressionKind::conditional, offset, std::move(condition), std::move(result),
                               std::move(otherwise));
      unknown_.resize(outer_unknown);  // an unknown filter is an error only if it is reached
    }
    return result;
  }

  struct BinarySymbol {
    std::string_view text;
    Operator op;
  };

  // Operands with operators of one precedence between them, from left to right.
  template <std::size_t n, class ParseOperand>
  ExpressionPtr parse_operations(const std::array<BinarySymbol, n>& symbols, ParseOperand parse_operand) {
    ExpressionPtr left = parse_operand();
    for (;;) {
      const auto symbol = std::find_if(symbols.begin(), symbols.end(),
                                       [&](const BinarySymbol& candidate) { return tokens_.is(candidate.text); });
      if (symbol == symbols.end()) return left;
      const std::size_t offset = tokens_.take().offset;
      left = make_expression(ExpressionKind::binary, offset, std::move(left), parse_operand());
      left->op = symbol->op;
    }
  }

  template <class ParseOperand>
  ExpressionPtr parse_logical(std::string_view word, ExpressionKind kind, ParseOperand parse_operand) {
    auto left = parse_operand();
    while (tokens_.is(word)) {
      const std::size_t offset = tokens_.take().offset;
      left = make_expression(kind, offset, std::move(left), parse_operand());
    }
    return left;
  }

  ExpressionPtr parse_or() {
    return parse_logical("or", ExpressionKind::logical_or, [&] { return parse_and(); });
  }

  ExpressionPtr parse_and() {
    return parse_logical("and", ExpressionKind::logical_and, [&] { return parse_not(); });
  }

  ExpressionPtr parse_not() {
    if (!tokens_.is("not")) return parse_comparison();
    const Nesting nesting = nest();
    const std::size_t offset = tokens_.take().offset;
    return make_expression(ExpressionKind::logical_not, offset, parse_not());
  }

  std::optional<Operator> take_comparison() {
    constexpr std::array<BinarySymbol, 7> symbols = {{{"==", Operator::equal},
                                                      {"!=", Operator::not_equal},
                                                      {"<", Operator::less},
                                                      {"<=", Operator::less_equal},
                                                      {">", Operator::greater},
                                                      {">=", Operator::greater_equal},
                                                      {"in", Operator::in}}};
    for (const auto& [text, op] : symbols) {
      if (tokens_.skip(text)) return op;
    }
    if (!tokens_.is("not") || tokens_.next().kind != TokenKind::name || tokens_.next().text != "in") return {};
    tokens_.take();
    tokens_.take();
    return Operator::not_in;
  }

  ExpressionPtr parse_comparison() {
    const std::size_t offset = tokens_.offset();
    auto left = parse_sum();
    const auto op = take_comparison();
    if (!op) return left;
    auto comparison = make_expression(ExpressionKind::binary, offset, std::move(left), parse_sum());
    comparison->op = *op;
    const std::size_t next = tokens_.offset();
    if (take_comparison()) throw SyntaxError(next, "a chain of comparisons is not supported");
    return comparison;
  }

  ExpressionPtr parse_sum() {
    constexpr std::array<BinarySymbol, 2> symbols = {{{"+", Operator::add}, {"-", Operator::subtract}}};
    return parse_operations(symbols, [&] { return parse_concatenation(); });
  }

  ExpressionPtr parse_concatenation() {
    constexpr std::array<BinarySymbol, 1> symbols = {{{"~", Operator::concatenate}}};
    return parse_operations(symbols, [&] { return parse_product(); });
  }

  ExpressionPtr parse_product() {
    constexpr std::array<BinarySymbol, 4> symbols = {
        {{"*", Operator::multiply}, {"/", Operator::divide}, {"//", Operator::floor_divide}, {"%", Operator::modulo}}};
    auto product = parse_operations(symbols, [&] { return parse_unary(); });
    if (tokens_.is("**")) throw SyntaxError(tokens_.offset(), "the operator ** is not supported");
    return product;
  }

  ExpressionPtr parse_unary(bool with_filter = true) {
    ExpressionPtr operand;
    if (tokens_.is("-") || tokens_.is("+")) {
      const Nesting nesting = nest();
      const Token sign = tokens_.take();
      const auto kind = sign.text == "-" ? ExpressionKind::negate : ExpressionKind::plus;
      operand = make_expression(kind, sign.offset, parse_unary(false));
    } else {
      operand = parse_primary();
    }
    operand = parse_postfix(std::move(operand));
    return with_filter ? parse_filters_and_tests(std::move(operand)) : std::move(operand);
  }

  ExpressionPtr parse_primary() {
    const Nesting nesting = nest();
    const Token& token = tokens_.current();
    if (token.kind == TokenKind::name) {
      auto name = parse_name();
      if (name->kind == ExpressionKind::name) mention(name->id, false);
      return name;
    }
    if (token.kind == TokenKind::literal) {
      return token.value.text() ? parse_string() : make_constant(token.offset, tokens_.take().value);
    }
    if (tokens_.skip("(")) {
      auto inside = parse_items(true, [&] { return parse_expression(); });
      tokens_.expect(")");
      return inside;
    }
    if (tokens_.is("[")) return parse_list();
    if (tokens_.is("{")) return parse_mapping();
    tokens_.fail_wanting("an expression");
  }

  // A name or a constant that looks like one.
  ExpressionPtr parse_name() {
    const auto [kind, name, value, offset] = tokens_.take();
    if (name == "true" || name == "True") return make_constant(offset, true);
    if (name == "false" || name == "False") return make_constant(offset, false);
    if (name == "none" || name == "None") return make_constant(offset, None{});
    if (name == "self") throw SyntaxError(offset, "'self', the blocks of a template, is not supported");
    if (name == "varargs" || name == "kwargs") {
      throw SyntaxError(offset, quote(name) + ", the other arguments of a macro, is not supported");
    }
    found_caller_ |= name == "caller";
    auto expression = make_expression(ExpressionKind::name, offset);
    expression->name = name;
    expression->id = id_of(name);
    return expression;
  }

  // Texts next to each other are one.
  ExpressionPtr parse_string() {
    const std::size_t offset = tokens_.offset();
    std::string text;
    while (tokens_.is(TokenKind::literal) && tokens_.current().value.text()) text += tokens_.take().value.text()->bytes;
    return make_constant(offset, std::move(text));
  }

  ExpressionPtr parse_list() {
    auto list = make_expression(ExpressionKind::list, tokens_.take().offset);
    while (!tokens_.is("]")) {
      adopt(*list, parse_expression());
      if (!tokens_.skip(",")) break;
    }
    tokens_.expect("]");
    return list;
  }

  ExpressionPtr parse_mapping() {
    auto mapping = make_expression(ExpressionKind::mapping, tokens_.take().offset);
    while (!tokens_.is("}")) {
      adopt(*mapping, parse_expression());
      tokens_.expect(":");
      adopt(*mapping, parse_expression());
      if (!tokens_.skip(",")) break;
    }
    tokens_.expect("}");
    return mapping;
  }

  ExpressionPtr parse_postfix(ExpressionPtr subject) {
    for (;;) {
      if (tokens_.is(".")) {
        subject = parse_attribute(std::move(subject));
      } else if (tokens_.is("[")) {
        subject = parse_subscript(std::move(subject));
      } else if (tokens_.is("(")) {
        subject = parse_call(std::move(subject));
      } else {
        return subject;
      }
    }
  }

  ExpressionPtr parse_filters_and_tests(ExpressionPtr subject) {
    for (;;) {
      if (tokens_.is("|")) {
        subject = parse_filters(std::move(subject));
      } else if (tokens_.is("is")) {
        subject = parse_test(std::move(subject));
      } else if (tokens_.is("(")) {
        subject = parse_call(std::move(subject));
      } else {
        return subject;
      }
    }
  }

  // Any number of `| name(arguments)`, applied to `subject`.
  ExpressionPtr parse_filters(ExpressionPtr subject) {
    while (tokens_.skip("|")) subject = parse_filter(std::move(subject));
    return subject;
  }

  // The name of a filter or test, applied to `subject`.
  ExpressionPtr parse_use(ExpressionKind kind, const Catalogue& catalogue, ExpressionPtr subject) {
    auto use = make_expression(kind, tokens_.offset(), std::move(subject));
    use->name = tokens_.expect(TokenKind::name, "a name").text;
    use->catalogue = &catalogue;
    use->builtin = catalogue.find(use->name);
    if (!use->builtin) unknown_.push_back(use.get());
    return use;
  }

  ExpressionPtr parse_filter(ExpressionPtr subject) {
    auto filter = parse_use(ExpressionKind::filter, filters(), std::move(subject));
    if (tokens_.is("(")) parse_arguments(*filter);
    return filter;
  }

  ExpressionPtr parse_test(ExpressionPtr subject) {
    tokens_.take();
    const std::size_t offset = tokens_.offset();
    const bool negated = tokens_.skip("not");
    auto test = parse_use(ExpressionKind::test, tests(), std::move(subject));
    const bool takes_operand =
        tokens_.is(TokenKind::name) || tokens_.is(TokenKind::literal) || tokens_.is("[") || tokens_.is("{");
    if (tokens_.is("(")) {
      parse_arguments(*test);
    } else if (takes_operand && !tokens_.is_one_of({"else", "or", "and"})) {
      if (tokens_.is("is")) throw SyntaxError(tokens_.offset(), "tests cannot be chained with 'is'");
      add_argument(*test, parse_postfix(parse_primary()));
    }
    return negated ? make_expression(ExpressionKind::logical_not, offset, std::move(test)) : std::move(test);
  }

  ExpressionPtr parse_attribute(ExpressionPtr subject) {
    auto attribute = make_expression(ExpressionKind::attribute, tokens_.take().offset, std::move(subject));
    if (tokens_.is(TokenKind::literal) && tokens_.current().value.get_if<std::int64_t>()) {
      attribute->kind = ExpressionKind::item;
      const Token index = tokens_.take();
      adopt(*attribute, make_constant(index.offset, index.value));
    } else {
      attribute->name = tokens_.expect(TokenKind::name, "a name or an index").text;
    }
    return attribute;
  }

  ExpressionPtr parse_subscript(ExpressionPtr subject) {
    auto item = make_expression(ExpressionKind::item, tokens_.take().offset, std::move(subject));
    const auto parse_bound = [&] { return tokens_.is(":") || tokens_.is("]") ? nullptr : parse_expression(); };
    adopt(*item, tokens_.is(":") ? nullptr : parse_expression());
    if (tokens_.skip(":")) {
      item->kind = ExpressionKind::slice;
      adopt(*item, parse_bound());
      adopt(*item, tokens_.skip(":") ? parse_bound() : nullptr);
    }
    if (tokens_.is(",")) throw SyntaxError(tokens_.offset(), "several subscripts are not supported");
    tokens_.expect("]");
    return item;
  }

  ExpressionPtr parse_call(ExpressionPtr subject) {
    auto call = make_expression(ExpressionKind::call, tokens_.offset(), std::move(subject));
    parse_arguments(*call);
    return call;
  }

  static void add_argument(Expression& call, ExpressionPtr argument) {
    raise_over(call, argument);
    call.arguments.positional.push_back(std::move(argument));
  }

  void parse_arguments(Expression& call) {
    tokens_.expect("(");
    std::set<std::string_view> keywords;
    while (!tokens_.is(")")) {
      parse_argument(call, keywords);
      if (!tokens_.skip(",")) break;
    }
    tokens_.expect(")");
  }

  void parse_argument(Expression& call, std::set<std::string_view>& keywords) {
    ArgumentExpressions& arguments = call.arguments;
    const std::size_t offset = tokens_.offset();
    const auto require = [&](bool fits) {
      if (!fits) throw SyntaxError(offset, "this argument cannot follow those before it");
    };
    if (tokens_.is("**")) throw SyntaxError(offset, "arguments taken from a mapping are not supported");
    if (tokens_.skip("*")) {
      require(!arguments.list);
      arguments.list = parse_expression();
      raise_over(call, arguments.list);
    } else if (tokens_.is(TokenKind::name) && tokens_.next().kind == TokenKind::symbol && tokens_.next().text == "=") {
      const std::string_view name = tokens_.take().text;
      if (!keywords.insert(name).second) throw SyntaxError(offset, "the argument " + quote(name) + " is repeated");
      tokens_.take();
      arguments.keywords.emplace_back(name, parse_expression());
      raise_over(call, arguments.keywords.back().second);
    } else {
      require(!arguments.list && arguments.keywords.empty());
      add_argument(call, parse_expression());
    }
  }

  // Statements.

  // Parses statements up to the tag whose name is in `end_names`, which is then the current token, or, without end
  // names, up to the end of the template.
  Body parse_body(Texts end_names) {
    Body body;
    while (!tokens_.is(TokenKind::end)) {
      if (tokens_.is(TokenKind::data)) {
        Token token = tokens_.take();
        body.emplace_back(StatementKind::text, token.offset).text = token.value.text()->bytes;
      } else if (tokens_.is(TokenKind::variable_begin)) {
        Statement& output = body.emplace_back(StatementKind::output, tokens_.take().offset);
        output.value = parse_tuple();
        tokens_.expect(TokenKind::variable_end, "'}}'");
      } else {
        tokens_.take();  // {%
        if (tokens_.is_one_of(end_names)) return body;
        body.push_back(parse_statement());
        tokens_.expect(TokenKind::block_end, "'%}'");
      }
    }
    if (end_names.size() > 0) tokens_.fail_wanting("{% " + std::string(*(end_names.end() - 1)) + " %}");
    return body;
  }

  // Parses the statements of a tag, starting before the end of its opening tag.
  Body parse_tag_body(Texts end_names) {
    const Nesting nesting(block_depth_, max_block_depth, "blocks", tokens_.offset());
    tokens_.skip(":");
    tokens_.expect(TokenKind::block_end, "'%}'");
    return parse_body(end_names);
  }

  Body parse_closed_body(std::string_view end_name) {
    Body body = parse_tag_body({end_name});
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
                                                 {"call", &Parser::parse_call_block},
                                                 {"filter", &Parser::parse_filter_block},
                                                 {"generation", &Parser::parse_generation},
                                                 {"break", &Parser::parse_break},
                                                 {"continue", &Parser::parse_continue}}};
    const Token name = tokens_.expect(TokenKind::name, "the name of a tag");
    const auto tag = std::find_if(tags.begin(), tags.end(), [&](const Tag& known) { return known.name == name.text; });
    if (tag != tags.end()) return (this->*tag->parse)(name.offset);
    constexpr std::array unsupported = {"block", "extends", "include", "import", "from", "autoescape", "with", "print"};
    const bool is_known = std::find(unsupported.begin(), unsupported.end(), name.text) != unsupported.end();
    throw SyntaxError(name.offset, (is_known ? "unsupported tag " : "unknown tag ") + quote(name.text));
  }

  Statement parse_if(std::size_t offset) {
    Statement statement(StatementKind::if_block, offset);
    const std::size_t outer_unknown = unknown_.size();
    ++branches_;
    std::string_view end;
    do {
      statement.expressions.push_back(parse_tuple(false));
      statement.bodies.push_back(parse_tag_body({"elif", "else", "endif"}));
      end = tokens_.take().text;
    } while (end == "elif");
    if (end == "else") statement.bodies.push_back(parse_closed_body("endif"));
    --branches_;
    unknown_.resize(outer_unknown);  // an unknown filter is an error only if it is reached
    return statement;
  }

  Statement parse_for(std::size_t offset) {
    Statement statement(StatementKind::for_loop, offset);
    statement.loop = std::make_unique<ForLoop>();
    ForLoop& loop = *statement.loop;
    ++loops_;
    loop.target = parse_target(false);
    tokens_.expect("in");
    loop.iterable = parse_tuple(false);
    parse_in_block([&](Block&) {
      if (tokens_.skip("if")) loop.condition = parse_expression();
    });
    if (tokens_.is("recursive")) throw SyntaxError(tokens_.offset(), "recursive loops are not supported");
    std::string_view end;
    loop.block = parse_in_block([&](Block& block) {
      ++breakable_loops_;
      block.body = parse_tag_body({"else", "endfor"});
      --breakable_loops_;
      end = tokens_.take().text;
    });
    if (end == "else") {
      loop.otherwise = parse_in_block([&](Block& block) { block.body = parse_closed_body("endfor"); });
    }
    --loops_;
    return statement;
  }

  Statement parse_set(std::size_t offset) {
    Statement statement(StatementKind::set, offset);
    statement.target = parse_target(true);
    if (tokens_.skip("=")) {
      statement.value = parse_tuple();
      assign_to(*statement.target);
      return statement;
    }
    statement.kind = StatementKind::set_block;
    assign_to(*statement.target);
    statement.block = parse_in_block([&](Block& block) {
      statement.value = parse_filters(make_expression(ExpressionKind::captured, tokens_.offset()));
      block.body = parse_closed_body("endset");
    });
    return statement;
  }

  Statement parse_filter_block(std::size_t offset) {
    Statement statement(StatementKind::filter_block, offset);
    statement.block = parse_in_block([&](Block& block) {
      statement.value = parse_filters(parse_filter(make_expression(ExpressionKind::captured, tokens_.offset())));
      block.body = parse_closed_body("endfilter");
    });
    return statement;
  }

  void parse_parameters(Function& function) {
    tokens_.expect("(");
    std::set<std::size_t> ids;
    while (!tokens_.is(")")) {
      if (!function.parameters.empty()) tokens_.expect(",");
      Parameter parameter{.name = parse_name_target(), .default_value = {}};
      const std::string& name = parameter.name->name;
      const std::size_t offset = parameter.name->offset;
      if (name == "caller") throw SyntaxError(offset, "a parameter called 'caller' is not supported");
      if (!ids.insert(parameter.name->id).second) {
        throw SyntaxError(offset, "two parameters are called " + quote(name));
      }
      if (tokens_.skip("=")) {
        parse_in_block([&](Block&) { parameter.default_value = parse_expression(); });
      } else if (!function.parameters.empty() && function.parameters.back().default_value) {
        throw SyntaxError(offset, "a parameter without a default follows one with a default");
      }
      function.parameters.push_back(std::move(parameter));
    }
    tokens_.expect(")");
  }

  // Parses the body of a function, which no break in it can leave.
  Block parse_function_body(std::string_view end_name) {
    const std::size_t outer_breakable = std::exchange(breakable_loops_, 0);
    Block result = parse_in_block([&](Block& block) { block.body = parse_closed_body(end_name); });
    breakable_loops_ = outer_breakable;
    return result;
  }

  Statement parse_macro(std::size_t offset) {
    Statement statement(StatementKind::macro, offset);
    statement.target = parse_name_target();
    assign_to(*statement.target);
    statement.function = std::make_unique<Function>();
    statement.function->name = statement.target->name;
    parse_parameters(*statement.function);
    const bool outer_found = std::exchange(found_caller_, false);
    statement.function->block = parse_function_body("endmacro");
    statement.function->takes_caller = found_caller_;
    found_caller_ |= outer_found;
    return statement;
  }

  Statement parse_call_block(std::size_t offset) {
    Statement statement(StatementKind::call_block, offset);
    statement.function = std::make_unique<Function>();
    statement.function->name = "caller";
    if (tokens_.is("(")) parse_parameters(*statement.function);
    const std::size_t call_offset = tokens_.offset();
    statement.value = parse_expression();
    if (statement.value->kind != ExpressionKind::call) {
      throw SyntaxError(call_offset, "a call block requires a call here");
    }
    statement.function->block = parse_function_body("endcall");
    return statement;
  }

  Statement parse_generation(std::size_t offset) {
    Statement statement(StatementKind::generation, offset);
    statement.function = std::make_unique<Function>();
    statement.function->block = parse_function_body("endgeneration");
    return statement;
  }

  Statement parse_break(std::size_t offset) {
    if (breakable_loops_ == 0) throw SyntaxError(offset, "'break' is not in a for loop");
    return {StatementKind::break_loop, offset};
  }

  Statement parse_continue(std::size_t offset) {
    if (breakable_loops_ == 0) throw SyntaxError(offset, "'continue' is not in a for loop");
    return {StatementKind::continue_loop, offset};
  }

  TokenStream tokens_;
  Template template_;
  std::map<std::string, std::size_t, std::less<>> ids_;
  Block* block_ = nullptr;
  std::vector<const Expression*> unknown_;  // the uses of unknown filters and tests that are errors so far
  std::size_t branches_ = 0;                // of if statements in the current block
  std::size_t expression_depth_ = 0;
  std::size_t block_depth_ = 0;
  std::size_t loops_ = 0;            // inside them `loop` cannot be assigned
  std::size_t breakable_loops_ = 0;  // that break and continue can leave
  bool found_caller_ = false;        // a name `caller` was parsed
};

}  // namespace

Template parse(std::string_view source) {
  return Parser(source).run();
}

}  // namespace minimind::jinja
