#include <utility>

#include "runtime/jinja/expression_parser.h"
#include "weights/io/quote.h"

// The part of the expression grammar that comes in brackets or behind an operand.

namespace minimind::jinja {

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
  // Any number of subscripts but one is a tuple of them.
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
    if (!fits) throw SyntaxError(offset, "this argument cannot stand behind those before it");
  };
  if (tokens_.skip_symbol("*")) {
    require(!arguments.list && !arguments.mapping);
    arguments.list = parse_expression();
  } else if (tokens_.skip_symbol("**")) {
    require(!arguments.mapping);
    arguments.mapping = parse_expression();
  } else if (tokens_.is(TokenKind::name) && tokens_.next().kind == TokenKind::symbol && tokens_.next().text == "=") {
    require(!arguments.mapping);
    std::string name(tokens_.take().text);
    for (const auto& [known, value] : arguments.keywords) {
      if (known == name) throw SyntaxError(offset, "the argument " + minimind::quoted(name) + " is given twice");
    }
    tokens_.take();
    arguments.keywords.emplace_back(std::move(name), parse_expression());
  } else {
    require(!arguments.list && !arguments.mapping && arguments.keywords.empty());
    arguments.positional.push_back(parse_expression());
  }
}

}  // namespace minimind::jinja
