#include "runtime/jinja/names.h"

#include <array>
#include <map>

#include "runtime/jinja/ast.h"
#include "runtime/jinja/builtins.h"
#include "runtime/jinja/lexer.h"
#include "weights/io/quote.h"

// Names are bound to variables before a template runs, as in Jinja2's compiler (its idtracking.py). A scope that
// assigns to a name has that name everywhere in it. A name without such a scope is looked up among the template's
// variables.

namespace minimind::jinja {
namespace {

// The variables of one function's frame. Sibling scopes share slots, as they share variables in Jinja2's code.
struct Frame {
  Frame* outer = nullptr;
  std::map<std::pair<std::size_t, std::string>, std::size_t> slots;  // by depth of scope and name

  std::size_t slot_of(std::size_t depth, const std::string& name) {
    return slots.emplace(std::pair(depth, name), slots.size()).first->second;
  }
};

template <class Use>
void for_each_child(const Expression& expression, Use&& use) {
  for (const auto& child : expression.children) {
    if (child) use(*child);
  }
  for (const auto& argument : expression.arguments.positional) use(*argument);
  for (const auto& [name, argument] : expression.arguments.keywords) use(*argument);
  if (expression.arguments.list) use(*expression.arguments.list);
}

class ScopeBinder {
 public:
  // `outer` is the surrounding scope, null for the template's scope.
  ScopeBinder(ScopeBinder* outer, Frame& frame) : outer_(outer), frame_(frame), depth_(outer ? outer->depth_ + 1 : 0) {}

  // All assignments of the scope are collected before its names are bound: an assignment at its end affects its start.
  void look_at(const Body& body) {
    for (const Statement& statement : body) look_at(statement);
  }
  void look_at(const ExpressionPtr& expression) {
    if (expression) look_at(*expression);
  }

  Variable declare_parameter(const std::string& name) {
    return define(name, {.variable = {}, .from = Load::From::parameter, .outer = {}, .name = {}});
  }
  // The names of a target that has an item or an argument at the start of the scope.
  void declare_parameters(const Expression& target) {
    if (target.kind == ExpressionKind::name) declare_parameter(target.name);
    for (const auto& child : target.children) declare_parameters(*child);
  }

  void bind(Body& body, bool is_soft) {
    for (Statement& statement : body) bind(statement, is_soft);
  }
  void bind(const ExpressionPtr& expression, bool is_soft) {
    if (expression) bind(*expression, is_soft);
  }

  void bind_function(Function& function) {
    Frame frame{.outer = &frame_, .slots = {}};
    ScopeBinder inside(this, frame);
    inside.look_at_function(function);
    for (const Parameter& parameter : function.parameters) {
      if (parameter.name->name != "caller") continue;
      throw SyntaxError(parameter.name->offset, "a parameter called 'caller' is not supported");
    }
    if (function.mentions_caller) function.caller = inside.declare_parameter("caller");
    for (Parameter& parameter : function.parameters) inside.bind(*parameter.name, false);
    for (Parameter& parameter : function.parameters) inside.bind(parameter.default_value, false);
    inside.bind(function.body, false);
    function.scope = inside.scope();
    function.slots = frame.slots.size();
  }

  Scope scope() const {
    Scope result;
    for (const auto& [name, load] : loads_) result.push_back(load);
    return result;
  }

 private:
  struct Found {
    const Frame* frame;
    std::size_t slot;
  };

  std::optional<Found> find(const std::string& name) const {
    for (const ScopeBinder* scope = this; scope; scope = scope->outer_) {
      const auto load = scope->loads_.find(name);
      if (load != scope->loads_.end()) return Found{&scope->frame_, load->second.variable.slot};
    }
    return std::nullopt;
  }

  Variable variable_of(const Found& found) const {
    Variable variable{.hops = 0, .slot = found.slot};
    for (const Frame* frame = &frame_; frame != found.frame; frame = frame->outer) ++variable.hops;
    return variable;
  }

  Variable define(const std::string& name, Load load) {
    load.variable = {.hops = 0, .slot = frame_.slot_of(depth_, name)};
    loads_[name] = load;
    return load.variable;
  }

  void store(const std::string& name) {
    if (loads_.contains(name)) return;
    Load load;
    if (const auto outside = outer_ ? outer_->find(name) : std::nullopt) {
      load.from = Load::From::outer_variable;
      load.outer = variable_of(*outside);
    } else if (branches_ > 0) {
      load.from = Load::From::context;  // it may stay unassigned
      load.name = name;
    }
    define(name, load);
  }

  void load(const std::string& name) {
    if (find(name)) return;
    define(name, {.variable = {}, .from = Load::From::context, .outer = {}, .name = name});
  }

  void look_at(const Expression& expression) {
    if (expression.kind == ExpressionKind::name && expression.stored) {
      store(expression.name);
    } else if (expression.kind == ExpressionKind::name || expression.kind == ExpressionKind::namespace_attribute) {
      load(expression.name);
    }
    for_each_child(expression, [&](const Expression& child) { look_at(child); });
  }

  // Stops at nodes with a scope of their own.
  void look_at(const Statement& statement) {
    switch (statement.kind) {
      case StatementKind::output:
        for (const auto& expression : statement.expressions) look_at(expression);
        return;
      case StatementKind::set:
        look_at(statement.value);
        return look_at(statement.target);
      case StatementKind::set_block:
      case StatementKind::macro:
        return look_at(statement.target);
      case StatementKind::filter_block:
      case StatementKind::call_block:
        return look_at(statement.value);
      case StatementKind::for_loop:
        return look_at(statement.loop->iterable);
      case StatementKind::if_block:
        return look_at_branches(statement);
      default:
        return;
    }
  }

  void look_at_branches(const Statement& statement) {
    for (std::size_t i = 0; i < statement.bodies.size(); ++i) {
      // Jinja visits the condition of an elif as a part of its branch; nothing is assigned to in a condition.
      if (i < statement.expressions.size()) look_at(statement.expressions[i]);
      ++branches_;
      look_at(statement.bodies[i]);
      --branches_;
    }
  }

  void look_at_function(const Function& function) {
    for (const Parameter& parameter : function.parameters) declare_parameters(*parameter.name);
    for (const Parameter& parameter : function.parameters) look_at(parameter.default_value);
    look_at(function.body);
  }

  void bind(Expression& expression, bool is_soft) {
    if (expression.kind == ExpressionKind::name || expression.kind == ExpressionKind::namespace_attribute) {
      const auto found = find(expression.name);
      if (!found) throw SyntaxError(expression.offset, quote(expression.name) + " is not known here");
      expression.variable = variable_of(*found);
    }
    // In a branch, an unknown filter is an error only if it is reached.
    if (expression.kind == ExpressionKind::filter && !is_soft) require_filter(expression.name, expression.offset);
    if (expression.kind == ExpressionKind::test && !is_soft) require_test(expression.name, expression.offset);
    const bool inside_soft = is_soft || expression.kind == ExpressionKind::conditional;
    for_each_child(expression, [&](Expression& child) { bind(child, inside_soft); });
  }

  void bind(Statement& statement, bool is_soft) {
    switch (statement.kind) {
      case StatementKind::set_block:
      case StatementKind::filter_block:
        return bind_captured(statement, is_soft);
      case StatementKind::if_block:
        for (const auto& condition : statement.expressions) bind(condition, true);
        for (Body& body : statement.bodies) bind(body, true);
        return;
      case StatementKind::for_loop:
        return bind_loop(*statement.loop, is_soft);
      default:
        bind(statement.target, is_soft);
        bind(statement.value, is_soft);
        for (const auto& expression : statement.expressions) bind(expression, is_soft);
        if (statement.function) bind_function(*statement.function);
    }
  }

  void bind_captured(Statement& statement, bool is_soft) {
    ScopeBinder inside(this, frame_);
    inside.look_at(statement.bodies[0]);
    if (statement.kind == StatementKind::filter_block) inside.look_at(statement.value);
    inside.bind(statement.bodies[0], false);
    bind(statement.target, is_soft);
    inside.bind(statement.value, false);
    statement.scope = inside.scope();
  }

  void bind_loop(ForLoop& loop, bool is_soft) {
    ScopeBinder inside(this, frame_);
    loop.loop = inside.declare_parameter("loop");
    inside.declare_parameters(*loop.target);
    inside.look_at(loop.body);
    ScopeBinder otherwise(this, frame_);
    otherwise.look_at(loop.else_body);
    if (loop.condition) {
      Frame frame{.outer = &frame_, .slots = {}};
      ScopeBinder condition(this, frame);
      condition.declare_parameters(*loop.condition_target);
      condition.look_at(loop.condition);
      condition.bind(loop.condition_target, false);
      condition.bind(loop.condition, false);
      loop.condition_scope = condition.scope();
      loop.condition_slots = frame.slots.size();
    }
    inside.bind(loop.target, false);
    bind(loop.iterable, is_soft);
    inside.bind(loop.body, false);
    otherwise.bind(loop.else_body, false);
    loop.scope = inside.scope();
    loop.else_scope = otherwise.scope();
  }

  ScopeBinder* outer_;
  Frame& frame_;
  std::size_t depth_;
  std::size_t branches_ = 0;
  std::map<std::string, Load> loads_;
};

}  // namespace

void bind_names(Template& parsed) {
  Frame frame;
  ScopeBinder scope(nullptr, frame);
  scope.look_at(parsed.body);
  scope.bind(parsed.body, false);
  parsed.scope = scope.scope();
  parsed.slots = frame.slots.size();
}

}  // namespace minimind::jinja
