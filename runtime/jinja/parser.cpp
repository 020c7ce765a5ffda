#include "runtime/jinja/parser.h"

#include <array>

#include "runtime/jinja/expression_parser.h"
#include "weights/io/quote.h"

namespace minimind::jinja {
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
  // Statements up to the tag that begins with one of `end_names`, whose name is the current token then, or without
  // such names up to the end of the template.
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

  // The body of a block whose opening tag has been read but for its end.
  Body parse_block_body(EndNames end_names) {
    if (++block_depth_ > max_block_depth) {
      throw SyntaxError(tokens_.offset(), "blocks are nested more than " + std::to_string(max_block_depth) + " deep");
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
    static constexpr std::array<Tag, 11> tags = {{{"if", &Parser::parse_if},
                                                  {"for", &Parser::parse_for},
                                                  {"set", &Parser::parse_set},
                                                  {"macro", &Parser::parse_macro},
                                                  {"call", &Parser::parse_call},
                                                  {"filter", &Parser::parse_filter},
                                                  {"with", &Parser::parse_with},
                                                  {"print", &Parser::parse_print},
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
    refuse(name.offset);
  }

  [[noreturn]] void refuse(std::size_t offset) const {
    const bool is_known = tokens_.is_one_of_names({"block", "extends", "include", "import", "from", "autoescape"});
    throw SyntaxError(offset,
                      (is_known ? "unsupported tag " : "unknown tag ") + minimind::quoted(tokens_.current().text));
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

  Statement parse_with(std::size_t offset) {
    Statement statement(StatementKind::with_block, offset);
    while (!tokens_.is(TokenKind::block_end)) {
      if (!statement.targets.empty()) tokens_.expect_symbol(",");
      statement.targets.push_back(expressions_.parse_target(false));
      tokens_.expect_symbol("=");
      statement.expressions.push_back(expressions_.parse_expression());
    }
    statement.bodies.push_back(parse_closed_body("endwith"));
    return statement;
  }

  Statement parse_print(std::size_t offset) {
    Statement statement(StatementKind::output, offset);
    while (!tokens_.is(TokenKind::block_end)) {
      if (!statement.expressions.empty()) tokens_.expect_symbol(",");
      statement.expressions.push_back(expressions_.parse_expression());
    }
    return statement;
  }

  void parse_parameters(Function& function) {
    tokens_.expect_symbol("(");
    while (!tokens_.is_symbol(")")) {
      if (!function.parameters.empty()) tokens_.expect_symbol(",");
      Parameter parameter{.name = expressions_.parse_name_target(), .default_value = {}};
      for (const Parameter& other : function.parameters) {
        if (other.name->name == parameter.name->name) {
          throw SyntaxError(parameter.name->offset, "two parameters are called " + minimind::quoted(other.name->name));
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

  // The body of a function, which no break in it leaves.
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
    statement.function->body = parse_function_body("endmacro");
    return statement;
  }

  Statement parse_call(std::size_t offset) {
    Statement statement(StatementKind::call_block, offset);
    statement.function = std::make_unique<Function>();
    statement.function->name = "caller";
    if (tokens_.is_symbol("(")) parse_parameters(*statement.function);
    const std::size_t call_offset = tokens_.offset();
    statement.value = expressions_.parse_expression();
    if (statement.value->kind != ExpressionKind::call) throw SyntaxError(call_offset, "a call block wants a call here");
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
    if (breakable_loops_ == 0) throw SyntaxError(offset, minimind::quoted(name) + " stands in no for loop");
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
