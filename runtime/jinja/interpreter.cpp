#include "runtime/jinja/interpreter.h"

#include "runtime/jinja/builtins.h"
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
    case StatementKind::with_block:
      return execute_with(statement, frame);
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

// The items that fulfil the loop's condition, which is asked no earlier than the item is needed.
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
  Loop state(std::move(source), size);
  Loop* const progress = loop.loop ? context_.own<Loop>(std::move(state)) : &state;
  bool completed_one = false;
  for (auto item = progress->advance(); item; item = progress->advance()) {
    context_.budget.spend(1);
    assign(*loop.target, *item, frame);
    if (loop.loop) variable(*loop.loop, frame) = static_cast<Object*>(progress);
    enter(loop.scope, frame);
    const Flow flow = execute(loop.body, frame);
    if (flow == Flow::break_loop) break;
    completed_one |= flow == Flow::next;
  }
  leave(loop.scope, frame);
  // In Jinja2, an iteration that `continue` or `break` cut short does not count.
  if (completed_one || loop.else_body.empty()) return Flow::next;
  enter(loop.else_scope, frame);
  const Flow flow = execute(loop.else_body, frame);
  leave(loop.else_scope, frame);
  return flow;
}

Interpreter::Flow Interpreter::execute_with(const Statement& statement, Frame& frame) {
  enter(statement.scope, frame);
  for (std::size_t i = 0; i < statement.targets.size(); ++i) {
    assign(*statement.targets[i], evaluate(*statement.expressions[i], frame), frame);
  }
  const Flow flow = execute(statement.bodies[0], frame);
  leave(statement.scope, frame);
  return flow;
}

Interpreter::Flow Interpreter::execute_captured(const Statement& statement, Frame& frame) {
  std::string text;
  std::string* const outer_output = std::exchange(output_, &text);
  enter(statement.scope, frame);
  const Flow flow = execute(statement.bodies[0], frame);
  output_ = outer_output;
  if (flow != Flow::next) return flow;  // what was written until then is lost
  const Value captured = make_text(std::move(text), context_.budget);
  const Value* const outer_captured = std::exchange(captured_, &captured);
  const Value result = evaluate(*statement.value, frame);
  captured_ = outer_captured;
  if (statement.kind == StatementKind::filter_block) {
    if (!result.text()) throw Failure("the filters of a block give " + result.kind_name() + "; wanted a string");
    emit(result.text()->bytes);
  } else if (statement.target->kind == ExpressionKind::namespace_attribute &&
             !variable(statement.target->variable, frame).name_space()) {
    throw Failure("cannot set an attribute of what is no namespace");
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
    if (!name_space)
      throw Failure("cannot set an attribute of " + minimind::quoted(target.name) + ", which is no namespace");
    if (target.attribute.starts_with("_")) {
      throw Failure("a namespace cannot hold " + minimind::quoted(target.attribute) + ", which begins with _");
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
        " items to assign; wanted " + std::to_string(wanted));
  }
  for (std::size_t i = 0; i < wanted; ++i) assign(*target.children[i], parts[i], frame);
}

}  // namespace minimind::jinja
