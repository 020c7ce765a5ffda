#include "runtime/jinja/interpreter.h"

#include "runtime/jinja/access.h"
#include "runtime/jinja/builtins.h"
#include "runtime/jinja/methods.h"
#include "runtime/jinja/show.h"
#include "weights/io/quote.h"

namespace minimind::jinja {
std::string Interpreter::run() {
  std::string output;
  output_ = &output;
  Frame& frame = new_frame(parsed_.slots, nullptr);
  enter(parsed_.scope, frame);
  execute(parsed_.body, frame);
  return output;
}

Interpreter::Frame& Interpreter::new_frame(std::size_t slots, Frame* outer) {
  context_.budget.make(sizeof(Frame) + slots * sizeof(Value));
  return frames_.emplace_back(slots, outer);
}

Value& Interpreter::variable(const Variable& place, Frame& frame) const {
  Frame* owner = &frame;
  for (std::size_t hop = 0; hop < place.hops; ++hop) owner = owner->outer;
  return owner->slots[place.slot];
}

Value Interpreter::look_up(const std::string& name) {
  if (const Value* const given = variables_.find(name)) return *given;
  const Builtin* const builtin = find_function(name);
  if (!builtin) return {};
  FunctionObject*& function = functions_[builtin];
  if (!function) function = context_.own<FunctionObject>(*builtin);
  return static_cast<Object*>(function);
}

void Interpreter::enter(const Scope& scope, Frame& frame) {
  for (const Load& load : scope) {
    Value& slot = variable(load.variable, frame);
    switch (load.from) {
      case Load::From::nothing:
        slot = Value();
        break;
      case Load::From::outer_variable:
        slot = variable(load.outer, frame);
        break;
      case Load::From::context:
        slot = look_up(load.name);
        break;
      case Load::From::parameter:
        break;
    }
  }
}

void Interpreter::leave(const Scope& scope, Frame& frame) {
  for (const Load& load : scope) frame.slots[load.variable.slot] = Value();
}

void Interpreter::emit(std::string_view text) {
  context_.budget.check_output(output_->size() + text.size());
  context_.budget.make(text.size());
  *output_ += text;
}

Interpreter::Flow Interpreter::execute(const Body& body, Frame& frame) {
  for (const Statement& statement : body) {
    if (const Flow flow = execute(statement, frame); flow != Flow::next) return flow;
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const Statement& statement, Frame& frame) {
  offset_ = statement.offset;
  context_.budget.spend(1);
  const Budget::Level level(context_.budget);
  switch (statement.kind) {
    case StatementKind::text:
      emit(statement.text);
      return Flow::next;
    case StatementKind::output:
      for (const auto& expression : statement.expressions) {
        emit(shown(evaluate(*expression, frame), context_.budget));
      }
      return Flow::next;
    case StatementKind::set:
      assign(*statement.target, evaluate(*statement.value, frame), frame);
      return Flow::next;
    case StatementKind::set_block:
    case StatementKind::filter_block:
      return execute_captured(statement, frame);
    case StatementKind::if_block:
      return execute_if(statement, frame);
    case StatementKind::for_loop:
      return execute_loop(*statement.loop, frame);
    case StatementKind::macro:
      assign(*statement.target, static_cast<Object*>(context_.own<Macro>(*statement.function, frame)), frame);
      return Flow::next;
    case StatementKind::call_block:
      execute_call_block(statement, frame);
      return Flow::next;
    case StatementKind::generation:
      emit(shown(call_macro(*statement.function, frame, {}), context_.budget));
      return Flow::next;
    case StatementKind::break_loop:
      return Flow::break_loop;
    case StatementKind::continue_loop:
      return Flow::continue_loop;
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::execute_if(const Statement& statement, Frame& frame) {
  for (std::size_t i = 0; i < statement.bodies.size(); ++i) {
    const bool is_else = i == statement.expressions.size();
    if (is_else || evaluate(*statement.expressions[i], frame).truth()) return execute(statement.bodies[i], frame);
  }
  return Flow::next;
}

// The items that fulfil the loop's condition, which is evaluated as late as possible.
Items Interpreter::filtered(const ForLoop& loop, Items source, Frame& frame) {
  Frame& inside = new_frame(loop.condition_slots, &frame);
  return [this, &loop, &inside, source = std::move(source), entered = false]() mutable -> std::optional<Value> {
    if (!std::exchange(entered, true)) enter(loop.condition_scope, inside);
    while (auto item = source()) {
      assign(*loop.condition_target, *item, inside);
      const bool is_tuple = loop.condition_target->kind == ExpressionKind::tuple;
      if (evaluate(*loop.condition, inside).truth()) {
        return is_tuple ? evaluate(*loop.condition_target, inside) : std::move(*item);
      }
    }
    return std::nullopt;
  };
}

Interpreter::Flow Interpreter::execute_loop(const ForLoop& loop, Frame& frame) {
  const Value iterable = evaluate(*loop.iterable, frame);
  offset_ = loop.iterable->offset;
  const auto size = loop.condition ? std::nullopt : size_of(iterable);
  Items source = items_of(context_, iterable);
  if (loop.condition) source = filtered(loop, std::move(source), frame);
  Loop* const progress = context_.own<Loop>(std::move(source), size);
  bool completed_one = false;
  for (auto item = progress->advance(); item; item = progress->advance()) {
    context_.budget.spend(1);
    assign(*loop.target, *item, frame);
    variable(loop.loop, frame) = static_cast<Object*>(progress);
    enter(loop.scope, frame);
    const Flow flow = execute(loop.body, frame);
    if (flow == Flow::break_loop) break;
    completed_one |= flow == Flow::next;
  }
  leave(loop.scope, frame);
  // In Jinja2, an iteration that `continue` or `break` ends does not count.
  if (completed_one || loop.else_body.empty()) return Flow::next;
  enter(loop.else_scope, frame);
  const Flow flow = execute(loop.else_body, frame);
  leave(loop.else_scope, frame);
  return flow;
}

Interpreter::Flow Interpreter::execute_captured(const Statement& statement, Frame& frame) {
  std::string text;
  std::string* const outer_output = std::exchange(output_, &text);
  enter(statement.scope, frame);
  const Flow flow = execute(statement.bodies[0], frame);
  output_ = outer_output;
  if (flow != Flow::next) return flow;  // the text so far is dropped
  const Value captured = make_text(std::move(text), context_.budget);
  const Value* const outer_captured = std::exchange(captured_, &captured);
  const Value result = evaluate(*statement.value, frame);
  captured_ = outer_captured;
  if (statement.kind == StatementKind::filter_block) {
    if (!result.text()) throw Failure("the filters of a block give " + result.kind_name() + ", expected a string");
    emit(result.text()->bytes);
  } else if (statement.target->kind == ExpressionKind::namespace_attribute &&
             !variable(statement.target->variable, frame).name_space()) {
    throw Failure("cannot set an attribute of a non-namespace");
  } else {
    assign(*statement.target, result, frame);
  }
  leave(statement.scope, frame);
  return Flow::next;
}

void Interpreter::execute_call_block(const Statement& statement, Frame& frame) {
  const Expression& call_expression = *statement.value;
  const Value callee = evaluate(*call_expression.children[0], frame);
  Arguments arguments = evaluate_arguments(call_expression.arguments, frame);
  for (const auto& [name, value] : arguments.keywords) {
    if (name == "caller") throw Failure("the call of a call block has an argument called 'caller'");
  }
  arguments.keywords.emplace_back("caller", static_cast<Object*>(context_.own<Macro>(*statement.function, frame)));
  offset_ = call_expression.offset;
  emit(shown(call(callee, std::move(arguments)), context_.budget));
}

void Interpreter::assign(const Expression& target, const Value& value, Frame& frame) {
  if (target.kind == ExpressionKind::name) {
    variable(target.variable, frame) = value;
    return;
  }
  offset_ = target.offset;
  if (target.kind == ExpressionKind::namespace_attribute) {
    Namespace* const name_space = variable(target.variable, frame).name_space();
    if (!name_space) throw Failure("cannot set an attribute of " + quote(target.name) + ", which is not a namespace");
    if (target.attribute.starts_with("_")) {
      throw Failure("a namespace cannot have " + quote(target.attribute) + ", which starts with _");
    }
    context_.budget.make(sizeof(Dict::Entry));
    name_space->attributes.set(target.attribute, value);
    return;
  }
  const std::size_t wanted = target.children.size();
  const Items items = items_of(context_, value);
  std::vector<Value> parts;
  while (parts.size() <= wanted) {
    auto item = items();
    if (!item) break;
    parts.push_back(std::move(*item));
  }
  if (parts.size() != wanted) {
    throw Failure(
        "found " +
        std::string(parts.size() > wanted ? "more than " + std::to_string(wanted) : std::to_string(parts.size())) +
        " items to assign, expected " + std::to_string(wanted));
  }
  for (std::size_t i = 0; i < wanted; ++i) assign(*target.children[i], parts[i], frame);
}

// Expressions and calls.

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
      break;  // an assignment target only
  }
  throw Failure("cannot evaluate this");
}

Value Interpreter::evaluate_name(const Expression& expression, Frame& frame) {
  const Value& value = variable(expression.variable, frame);
  if (!value.is_missing()) return value;
  return make_undefined(quote(expression.name) + " is undefined");
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
  const FoundMethod found = find_method(method.self, method.name);
  if (!found.builtin) {
    throw Failure("the method " + quote(method.name) + " of " + method.self.kind_name() + " is not supported");
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
    Value value = parameter.default_value ? evaluate(*parameter.default_value, frame)
                                          : make_undefined("no argument is given for " + quote(parameter.name->name));
    place = std::move(value);
  }
  std::string text;
  std::string* const outer_output = std::exchange(output_, &text);
  execute(function.body, frame);
  output_ = outer_output;
  return make_text(std::move(text), context_.budget);
}

void Interpreter::bind_arguments(const Function& function, Arguments arguments, Frame& frame) {
  const auto fail = [&](const std::string& what) { throw Failure("the macro " + quote(function.name) + what); };
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
  if (!arguments.keywords.empty()) fail(" takes no argument " + quote(arguments.keywords[0].first));
  if (arguments.positional.size() > count) {
    fail(" takes " + std::to_string(count) + " arguments at most; found " +
         std::to_string(arguments.positional.size()));
  }
}

}  // namespace minimind::jinja
