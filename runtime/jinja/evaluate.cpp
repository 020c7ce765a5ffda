#include "runtime/jinja/builtins.h"
#include "runtime/jinja/interpreter.h"
#include "runtime/jinja/show.h"
#include "weights/io/quote.h"

// Expressions and calls.

namespace minimind::jinja {

Value Interpreter::evaluate(const Expression& expression, Frame& frame) {
  context_.budget.spend(1);
  const Budget::Level level(context_.budget);
  return evaluate_node(expression, frame);
}

Value Interpreter::evaluate_node(const Expression& expression, Frame& frame) {
  const auto child = [&](std::size_t i) { return evaluate(*expression.children[i], frame); };
  switch (expression.kind) {
    case ExpressionKind::constant:
      return expression.value;
    case ExpressionKind::name:
      return evaluate_name(expression, frame);
    case ExpressionKind::captured:
      return *captured_;
    case ExpressionKind::list:
    case ExpressionKind::tuple:
      return evaluate_sequence(expression, frame);
    case ExpressionKind::mapping:
      return evaluate_mapping(expression, frame);
    case ExpressionKind::attribute: {
      const Value subject = child(0);
      offset_ = expression.offset;
      return attribute_of(context_, subject, expression.attribute);
    }
    case ExpressionKind::item: {
      const Value subject = child(0);
      const Value key = child(1);
      offset_ = expression.offset;
      return item_of(context_, subject, key);
    }
    case ExpressionKind::slice:
      return evaluate_slice(expression, frame);
    case ExpressionKind::call: {
      const Value callee = child(0);
      Arguments arguments = evaluate_arguments(expression.arguments, frame);
      offset_ = expression.offset;
      return call(callee, std::move(arguments));
    }
    case ExpressionKind::filter:
    case ExpressionKind::test: {
      const Value subject = child(0);
      const Arguments arguments = evaluate_arguments(expression.arguments, frame);
      offset_ = expression.offset;
      if (expression.kind == ExpressionKind::test) return apply_test(context_, expression.name, subject, arguments);
      return apply_filter(context_, expression.name, subject, arguments);
    }
    case ExpressionKind::unary:
      return evaluate_unary(expression, frame);
    case ExpressionKind::binary:
      return evaluate_binary(expression, frame);
    case ExpressionKind::comparison:
      return evaluate_comparison(expression, frame);
    case ExpressionKind::concatenation:
      return evaluate_concatenation(expression, frame);
    case ExpressionKind::conditional:
      if (child(0).truth()) return child(1);
      if (expression.children[2]) return child(2);
      return make_undefined("the condition is false and there is no else");
    case ExpressionKind::namespace_attribute:
      break;  // only assigned to
  }
  throw Failure("cannot evaluate this");
}

Value Interpreter::evaluate_name(const Expression& expression, Frame& frame) {
  const Value& value = variable(expression.variable, frame);
  if (!value.is_missing()) return value;
  return make_undefined(minimind::quoted(expression.name) + " is undefined");
}

Value Interpreter::evaluate_sequence(const Expression& expression, Frame& frame) {
  std::vector<Value> items;
  items.reserve(expression.children.size());
  for (const auto& child : expression.children) items.push_back(evaluate(*child, frame));
  offset_ = expression.offset;
  if (expression.kind == ExpressionKind::tuple) return make_tuple(std::move(items), context_.budget);
  return make_list(std::move(items), context_.budget);
}

Value Interpreter::evaluate_mapping(const Expression& expression, Frame& frame) {
  Dict dict;
  for (std::size_t i = 0; i + 1 < expression.children.size(); i += 2) {
    Value key = evaluate(*expression.children[i], frame);
    Value value = evaluate(*expression.children[i + 1], frame);
    offset_ = expression.offset;
    dict.set(std::move(key), std::move(value));
  }
  return make_dict(std::move(dict), context_.budget);
}

Value Interpreter::evaluate_slice(const Expression& expression, Frame& frame) {
  std::vector<Value> parts;
  for (const auto& child : expression.children) parts.push_back(child ? evaluate(*child, frame) : Value());
  const auto bound = [&](std::size_t i) { return parts[i].is_missing() ? nullptr : &parts[i]; };
  offset_ = expression.offset;
  return slice_of(context_, parts[0], bound(1), bound(2), bound(3));
}

Value Interpreter::evaluate_unary(const Expression& expression, Frame& frame) {
  const Value operand = evaluate(*expression.children[0], frame);
  if (expression.operators[0] == Operator::logical_not) return !operand.truth();
  offset_ = expression.offset;
  if (expression.operators[0] == Operator::negate) return negated(operand);
  require_defined(operand);
  if (!operand.is_number()) throw Failure("cannot put + before " + operand.kind_name());
  return operand.is_bool() ? Value(*operand.integer()) : operand;
}

Value Interpreter::evaluate_binary(const Expression& expression, Frame& frame) {
  const Operator op = expression.operators[0];
  Value left = evaluate(*expression.children[0], frame);
  if (op == Operator::logical_and && !left.truth()) return left;
  if (op == Operator::logical_or && left.truth()) return left;
  Value right = evaluate(*expression.children[1], frame);
  if (op == Operator::logical_and || op == Operator::logical_or) return right;
  offset_ = expression.offset;
  return binary_operation(context_, op, left, right);
}

Value Interpreter::evaluate_comparison(const Expression& expression, Frame& frame) {
  Value left = evaluate(*expression.children[0], frame);
  for (std::size_t i = 0; i < expression.operators.size(); ++i) {
    Value right = evaluate(*expression.children[i + 1], frame);
    offset_ = expression.offset;
    if (!compare(context_, expression.operators[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::evaluate_concatenation(const Expression& expression, Frame& frame) {
  std::vector<Value> operands;
  for (const auto& child : expression.children) operands.push_back(evaluate(*child, frame));
  offset_ = expression.offset;
  std::string text;
  for (const Value& operand : operands) text += shown(operand, context_.budget);
  return make_text(std::move(text), context_.budget);
}

Arguments Interpreter::evaluate_arguments(const ArgumentExpressions& expressions, Frame& frame) {
  Arguments arguments;
  for (const auto& argument : expressions.positional) arguments.positional.push_back(evaluate(*argument, frame));
  if (expressions.list) {
    const Value list = evaluate(*expressions.list, frame);
    offset_ = expressions.list->offset;
    for (Value& item : all_items_of(context_, list)) arguments.positional.push_back(std::move(item));
  }
  for (const auto& [name, argument] : expressions.keywords) {
    arguments.keywords.emplace_back(name, evaluate(*argument, frame));
  }
  if (expressions.mapping) {
    const Value mapping = evaluate(*expressions.mapping, frame);
    offset_ = expressions.mapping->offset;
    if (!mapping.dict()) throw Failure("found " + mapping.kind_name() + " behind **; wanted a mapping");
    context_.budget.make(mapping.dict()->size() * sizeof(Dict::Entry));
    for (const auto& [key, value] : mapping.dict()->entries()) {
      const std::string& name = string_argument(key, "the name of an argument").bytes;
      for (const auto& [known, given] : expressions.keywords) {
        if (known == name) throw Failure("the argument " + minimind::quoted(name) + " is given twice");
      }
      arguments.keywords.emplace_back(name, value);
    }
  }
  return arguments;
}

Value Interpreter::call(const Value& callee, Arguments arguments) {
  require_defined(callee);
  if (Object* const macro = callee.object(Object::Kind::macro)) {
    const auto* const body = static_cast<Macro*>(macro);
    return call_macro(body->function, body->outer, std::move(arguments));
  }
  if (Object* const function = callee.object(Object::Kind::function)) {
    return run_builtin(context_, static_cast<FunctionObject*>(function)->builtin, Value(), arguments);
  }
  if (const Method* const method = callee.method()) return call_method(*method, arguments);
  if (callee.object(Object::Kind::loop)) throw Failure("recursive loops are not supported");
  throw Failure("cannot call " + callee.kind_name());
}

Value Interpreter::call_method(const Method& method, const Arguments& arguments) {
  if (Object* const object = method.self.object(Object::Kind::loop)) {
    auto* const loop = static_cast<Loop*>(object);
    if (!arguments.keywords.empty()) throw Failure("the methods of a loop take no named arguments");
    if (method.name == "cycle") return loop->cycle(arguments.positional);
    return loop->changed(context_, arguments.positional);
  }
  const FoundMethod found = find_method(method.self, method.name);
  if (!found.builtin) {
    throw Failure("the method " + minimind::quoted(method.name) + " of " + method.self.kind_name() +
                  " is not supported");
  }
  return run_builtin(context_, *found.builtin, method.self, arguments);
}

Value Interpreter::call_macro(const Function& function, Frame& outer, Arguments arguments) {
  context_.budget.spend(1);
  const Budget::Level level(context_.budget);
  Frame& frame = new_frame(function.slots, &outer);
  bind_arguments(function, std::move(arguments), frame);
  enter(function.scope, frame);
  for (const Parameter& parameter : function.parameters) {
    Value& place = variable(parameter.name->variable, frame);
    if (!place.is_missing()) continue;
    Value value = parameter.default_value
                      ? evaluate(*parameter.default_value, frame)
                      : make_undefined("no argument is given for " + minimind::quoted(parameter.name->name));
    place = std::move(value);
  }
  std::string text;
  std::string* const outer_output = std::exchange(output_, &text);
  execute(function.body, frame);
  output_ = outer_output;
  return make_text(std::move(text), context_.budget);
}

void Interpreter::bind_arguments(const Function& function, Arguments arguments, Frame& frame) {
  const auto fail = [&](const std::string& what) {
    throw Failure("the macro " + minimind::quoted(function.name) + what);
  };
  const auto take_keyword = [&](std::string_view name) {
    for (auto keyword = arguments.keywords.begin(); keyword != arguments.keywords.end(); ++keyword) {
      if (keyword->first != name) continue;
      Value value = std::move(keyword->second);
      arguments.keywords.erase(keyword);
      return value;
    }
    return Value();
  };
  const std::size_t count = function.parameters.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Expression& name = *function.parameters[i].name;
    const bool is_given = i < arguments.positional.size();
    variable(name.variable, frame) = is_given ? arguments.positional[i] : take_keyword(name.name);
  }
  if (function.caller) {
    Value caller = take_keyword("caller");
    if (caller.is_missing() || caller.is_none()) caller = make_undefined("no caller is defined");
    variable(*function.caller, frame) = std::move(caller);
  }
  if (function.keywords) {
    Dict rest;
    for (auto& [name, value] : arguments.keywords) rest.set(std::move(name), std::move(value));
    variable(*function.keywords, frame) = make_dict(std::move(rest), context_.budget);
  } else if (!arguments.keywords.empty()) {
    fail(" takes no argument " + minimind::quoted(arguments.keywords[0].first));
  }
  if (function.positional) {
    std::vector<Value> rest;
    for (std::size_t i = count; i < arguments.positional.size(); ++i) rest.push_back(arguments.positional[i]);
    variable(*function.positional, frame) = make_tuple(std::move(rest), context_.budget);
  } else if (arguments.positional.size() > count) {
    fail(" takes " + std::to_string(count) + " arguments at most; found " +
         std::to_string(arguments.positional.size()));
  }
}

}  // namespace minimind::jinja
