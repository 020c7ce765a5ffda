#include "runtime/jinja/jinja.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/jinja/lexer.h"
#include "runtime/jinja/parser.h"
#include "runtime/jinja/show.h"
#include "runtime/text/code_points.h"
#include "runtime/text/utf8.h"
#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind::jinja {
namespace {

// The variable `loop` of a for loop, which also determines its items as late as possible.
class Loop : public Object {
 public:
  // Returns whether an item fulfils the condition of the loop, null if there is none. It may replace the item.
  using Fits = std::function<bool(Value& item)>;

  Loop(std::vector<Value> items, Fits fits) : items_(std::move(items)), fits_(std::move(fits)) {}

  // Goes to the next item, the first one at the start. Returns false if there is none.
  bool advance() { return has(static_cast<std::size_t>(++index_)); }
  const Value& item() const { return items_[static_cast<std::size_t>(index_)]; }

  // Returns to an iterator the items that the loop did not read.
  void leave(const Value& iterable) const { put_back(iterable, items_, read_); }

  std::string kind_name() const override { return "a loop"; }
  Value call(const Arguments&) override { throw Failure("recursive loops are not supported"); }
  Value attribute(std::string_view name) override {
    const auto at = static_cast<std::size_t>(index_);
    if (name == "index0") return index_;
    if (name == "index") return index_ + 1;
    if (name == "first") return index_ == 0;
    if (name == "last") return !has(at + 1);
    if (name == "length") return length();
    if (name == "revindex") return length() - index_;
    if (name == "revindex0") return length() - index_ - 1;
    if (name == "previtem") return at > 0 ? items_[at - 1] : make_undefined("there is no previous item");
    if (name == "nextitem") return has(at + 1) ? items_[at + 1] : make_undefined("there is no next item");
    if (name == "depth" || name == "depth0" || name == "cycle" || name == "changed") {
      throw Failure("loop." + std::string(name) + " is not supported");
    }
    return Object::attribute(name);
  }

 private:
  // Moves the items that fit to the front until there is one at `index`, if there is.
  bool has(std::size_t index) {
    while (kept_ <= index && read_ < items_.size()) {
      Value item = std::move(items_[read_++]);
      if (!fits_ || fits_(item)) items_[kept_++] = std::move(item);
    }
    return index < kept_;
  }
  std::int64_t length() {
    has(items_.size());
    return static_cast<std::int64_t>(kept_);
  }

  std::vector<Value> items_;
  Fits fits_;
  std::size_t kept_ = 0;
  std::size_t read_ = 0;
  std::int64_t index_ = -1;
};

// The variables of a block while it runs.
struct Scope {
  Scope(const Block* of_block, Scope* outer_scope) : block(of_block), outer(outer_scope) {}
  const Block* block;  // null for the condition of a loop
  Scope* outer;
  std::map<std::size_t, Value> variables;  // a missing value is undefined
};

enum class Flow { next, break_loop, continue_loop };

class Interpreter {
 public:
  Interpreter(const Template& parsed, const Dict& variables, Context& context, std::size_t& offset)
      : parsed_(parsed), variables_(variables), context_(context), offset_(offset), globals_(parsed.names.size()) {}

  MarkedText run() {
    return captured([&] { execute(parsed_.block.body, new_scope(&parsed_.block, nullptr)); });
  }

 private:
  // A macro, or the body of a call block, as a value.
  struct Macro : Object {
    Macro(Interpreter& by, const Function& body, Scope& closure) : interpreter(by), function(body), outer(closure) {}
    std::string kind_name() const override { return "a function"; }
    Value attribute(std::string_view) override { throw Failure("attributes of functions are not supported"); }
    Value call(const Arguments& arguments) override { return interpreter.call_macro(function, outer, arguments); }
    Interpreter& interpreter;
    const Function& function;
    Scope& outer;
  };
  struct GlobalFunction : Object {
    GlobalFunction(Context& of_rendering, const Builtin& body) : context(of_rendering), builtin(body) {}
    std::string kind_name() const override { return "a function"; }
    Value attribute(std::string_view) override { throw Failure("attributes of functions are not supported"); }
    Value call(const Arguments& arguments) override { return run_builtin(context, builtin, Value(), arguments); }
    Context& context;
    const Builtin& builtin;
  };

  // Variables.

  Scope& new_scope(const Block* block, Scope* outer) {
    context_.budget.make(sizeof(Scope));
    return scopes_.emplace_back(block, outer);
  }

  // Returns the variable of this name, missing if there is none.
  Value look_up(std::size_t id, const Scope& scope) {
    bool is_hidden = false;
    for (const Scope* at = &scope; at; at = at->outer) {
      context_.budget.spend(1);
      const auto variable = at->variables.find(id);
      if (variable != at->variables.end()) return variable->second;
      if (!at->block) continue;
      const auto hides = at->block->hides.find(id);
      if (hides != at->block->hides.end()) is_hidden = hides->second;  // the outermost block decides
    }
    return is_hidden ? Value() : global(id);
  }

  // Returns the variable of the template or the function of this name.
  const Value& global(std::size_t id) {
    std::optional<Value>& known = globals_[id];
    if (known) return *known;
    if (const Value* const given = variables_.find(parsed_.names[id], context_.budget)) return known.emplace(*given);
    const Builtin* const builtin = find_function(parsed_.names[id]);
    if (!builtin) return known.emplace();
    return known.emplace(static_cast<Object*>(context_.own<GlobalFunction>(context_, *builtin)));
  }

  void set_variable(Scope& scope, std::size_t id, Value value) {
    constexpr std::size_t map_node = 80;
    const auto [place, is_new] = scope.variables.insert_or_assign(id, std::move(value));
    if (is_new) context_.budget.make(map_node);
  }

  void assign(const Expression& target, const Value& value, Scope& scope) {
    if (target.kind == ExpressionKind::name) return set_variable(scope, target.id, value);
    offset_ = target.offset;
    if (target.kind == ExpressionKind::attribute) {
      const Value subject = evaluate(*target.children[0], scope);
      auto* const name_space = subject.object<Namespace>();
      if (!name_space) throw Failure("cannot set an attribute of " + subject.kind_name() + ", expected a namespace");
      return name_space->set(target.name, value, context_.budget);
    }
    const std::size_t wanted = target.children.size();
    const std::vector<Value> parts = items_of(context_, value);
    if (parts.size() != wanted) {
      throw Failure("found " + std::to_string(parts.size()) + " items to assign, expected " + std::to_string(wanted));
    }
    for (std::size_t i = 0; i < wanted; ++i) assign(*target.children[i], parts[i], scope);
  }

  // Statements.

  void emit(const MarkedText& text) {
    spend_output(text.bytes.size());
    output_->append(text);
  }
  void emit(std::string_view unmarked) {
    spend_output(unmarked.size());
    output_->append(unmarked);
  }
  void spend_output(std::size_t size) {
    context_.budget.check_output(output_->bytes.size() + size);
    context_.budget.make(size);
  }

  // Returns the text that `run` emits.
  template <class Run>
  MarkedText captured(Run run) {
    MarkedText text;
    MarkedText* const outer_output = std::exchange(output_, &text);
    run();
    output_ = outer_output;
    return text;
  }

  Flow execute(const Body& body, Scope& scope) {
    for (const Statement& statement : body) {
      if (const Flow flow = execute(statement, scope); flow != Flow::next) return flow;
    }
    return Flow::next;
  }

  Flow execute(const Statement& statement, Scope& scope) {
    offset_ = statement.offset;
    context_.budget.spend(1);
    const Budget::Level level(context_.budget);
    switch (statement.kind) {
      case StatementKind::text:
        emit(statement.text);
        return Flow::next;
      case StatementKind::output:
        emit(shown(evaluate(*statement.value, scope), context_.budget));
        return Flow::next;
      case StatementKind::set:
        assign(*statement.target, evaluate(*statement.value, scope), scope);
        return Flow::next;
      case StatementKind::set_block:
      case StatementKind::filter_block:
        return execute_captured(statement, scope);
      case StatementKind::if_block:
        return execute_if(statement, scope);
      case StatementKind::for_loop:
        return execute_loop(*statement.loop, scope);
      case StatementKind::macro:
        assign(*statement.target, make_macro(*statement.function, scope), scope);
        return Flow::next;
      case StatementKind::call_block:
        execute_call_block(statement, scope);
        return Flow::next;
      case StatementKind::generation:
        emit(shown(call_macro(*statement.function, scope, {}), context_.budget));
        return Flow::next;
      case StatementKind::break_loop:
        return Flow::break_loop;
      case StatementKind::continue_loop:
        return Flow::continue_loop;
    }
    return Flow::next;
  }

  Flow execute_if(const Statement& statement, Scope& scope) {
    for (std::size_t i = 0; i < statement.bodies.size(); ++i) {
      const bool is_else = i == statement.expressions.size();
      if (is_else || evaluate(*statement.expressions[i], scope).truth()) return execute(statement.bodies[i], scope);
    }
    return Flow::next;
  }

  Flow execute_loop(const ForLoop& loop, Scope& scope) {
    const Value iterable = evaluate(*loop.iterable, scope);
    offset_ = loop.iterable->offset;
    Loop* const progress = context_.own<Loop>(items_of(context_, iterable), condition_of(loop, scope));
    Scope& inside = new_scope(&loop.block, &scope);
    bool completed_one = false;
    while (progress->advance()) {
      context_.budget.spend(1);
      inside.variables.clear();
      assign(*loop.target, progress->item(), inside);
      set_variable(inside, parsed_.loop, static_cast<Object*>(progress));
      const Flow flow = execute(loop.block.body, inside);
      if (flow == Flow::break_loop) break;
      completed_one |= flow == Flow::next;
    }
    progress->leave(iterable);
    inside.variables.clear();
    // In Jinja2, an iteration that `continue` or `break` ends does not count.
    return completed_one ? Flow::next : execute(loop.otherwise.body, new_scope(&loop.otherwise, &scope));
  }

  Loop::Fits condition_of(const ForLoop& loop, Scope& scope) {
    if (!loop.condition) return nullptr;
    return [this, &loop, &inside = new_scope(nullptr, &scope)](Value& item) {
      inside.variables.clear();
      assign(*loop.target, item, inside);
      if (!evaluate(*loop.condition, inside).truth()) return false;
      if (loop.target->kind == ExpressionKind::tuple) item = evaluate(*loop.target, inside);
      return true;
    };
  }

  Flow execute_captured(const Statement& statement, Scope& scope) {
    Scope& inside = new_scope(&statement.block, &scope);
    Flow flow = Flow::next;
    MarkedText text = captured([&] { flow = execute(statement.block.body, inside); });
    if (flow != Flow::next) return flow;  // the text so far is dropped
    const Value content = make_text(std::move(text), context_.budget);
    const Value* const outer_content = std::exchange(content_, &content);
    const Value result = evaluate(*statement.value, inside);
    content_ = outer_content;
    if (statement.kind == StatementKind::set_block) {
      assign(*statement.target, result, scope);
    } else {
      if (!result.text()) throw Failure("the filters of a block give " + result.kind_name() + ", expected a string");
      emit(*result.text());
    }
    return Flow::next;
  }

  void execute_call_block(const Statement& statement, Scope& scope) {
    const Expression& call = *statement.value;
    const Value callee = evaluate(*call.children[0], scope);
    Arguments arguments = evaluate_arguments(call.arguments, scope);
    if (arguments.find("caller")) throw Failure("the call of a call block has an argument called 'caller'");
    arguments.keywords.emplace_back("caller", make_macro(*statement.function, scope));
    offset_ = call.offset;
    emit(shown(call_value(callee, arguments), context_.budget));
  }

  // Expressions.

  Value evaluate(const Expression& expression, Scope& scope) {
    context_.budget.spend(1);
    const Budget::Level level(context_.budget);
    const auto child = [&](std::size_t i) { return evaluate(*expression.children[i], scope); };
    switch (expression.kind) {
      case ExpressionKind::constant:
        return expression.value;
      case ExpressionKind::name:
        return evaluate_name(expression, scope);
      case ExpressionKind::captured:
        return *content_;
      case ExpressionKind::logical_not:
        return !child(0).truth();
      case ExpressionKind::logical_and:
      case ExpressionKind::logical_or: {
        Value left = child(0);
        return left.truth() == (expression.kind == ExpressionKind::logical_or) ? std::move(left) : child(1);
      }
      case ExpressionKind::conditional:
        if (child(0).truth()) return child(1);
        if (expression.children[2]) return child(2);
        return make_undefined("the condition is false and there is no else");
      default:
        return evaluate_operation(expression, scope);
    }
  }

  Value evaluate_name(const Expression& name, const Scope& scope) {
    Value value = look_up(name.id, scope);
    if (!value.is_missing()) return value;
    return make_undefined(quote(name.name) + " is undefined", context_.budget);
  }

  // The expressions that evaluate all their parts first.
  Value evaluate_operation(const Expression& expression, Scope& scope) {
    std::vector<Value> parts;  // a missing one is an omitted bound
    for (const auto& child : expression.children) parts.push_back(child ? evaluate(*child, scope) : Value());
    const Arguments arguments = evaluate_arguments(expression.arguments, scope);
    const auto bound = [&](std::size_t i) { return parts[i].is_missing() ? nullptr : &parts[i]; };
    offset_ = expression.offset;
    switch (expression.kind) {
      case ExpressionKind::list:
        return make_list(std::move(parts), context_.budget);
      case ExpressionKind::tuple:
        return make_list(std::move(parts), context_.budget, List::Kind::tuple);
      case ExpressionKind::mapping:
        return make_mapping(parts);
      case ExpressionKind::attribute:
        return attribute_of(context_, parts[0], expression.name);
      case ExpressionKind::item:
        return item_of(context_, parts[0], parts[1]);
      case ExpressionKind::slice:
        return slice_of(context_, parts[0], bound(1), bound(2), bound(3));
      case ExpressionKind::call:
        return call_value(parts[0], arguments);
      case ExpressionKind::filter:
      case ExpressionKind::test:
        if (!expression.builtin) throw Failure(expression.catalogue->missing(expression.name));
        return run_builtin(context_, *expression.builtin, parts[0], arguments);
      case ExpressionKind::negate:
        return negated(parts[0]);
      case ExpressionKind::plus:
        return integer_argument(parts[0], "the operand of +");
      default:
        return binary_operation(context_, expression.op, parts[0], parts[1]);
    }
  }

  Value make_mapping(const std::vector<Value>& parts) {
    Dict dict;
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2) dict.set(parts[i], parts[i + 1], context_.budget);
    return make_dict(std::move(dict), context_.budget);
  }

  Arguments evaluate_arguments(const ArgumentExpressions& expressions, Scope& scope) {
    Arguments arguments;
    for (const auto& argument : expressions.positional) arguments.positional.push_back(evaluate(*argument, scope));
    if (expressions.list) {
      const Value list = evaluate(*expressions.list, scope);
      offset_ = expressions.list->offset;
      for (Value& item : items_of(context_, list)) arguments.positional.push_back(std::move(item));
    }
    for (const auto& [name, argument] : expressions.keywords) {
      arguments.keywords.emplace_back(name, evaluate(*argument, scope));
    }
    return arguments;
  }

  // Calls.

  Value make_macro(const Function& function, Scope& scope) {
    return static_cast<Object*>(context_.own<Macro>(*this, function, scope));
  }

  Value call_value(const Value& callee, const Arguments& arguments) {
    require_defined(callee);
    if (Object* const object = callee.object()) return object->call(arguments);
    if (const Method* const method = callee.method()) {
      return run_builtin(context_, *method->builtin, method->self, arguments);
    }
    throw Failure("cannot call " + callee.kind_name());
  }

  Value call_macro(const Function& function, Scope& outer, const Arguments& arguments) {
    context_.budget.spend(1);
    const Budget::Level level(context_.budget);
    Scope& scope = new_scope(&function.block, &outer);
    bind_arguments(function, arguments, scope);
    for (const auto& [name, default_value] : function.parameters) {
      if (!scope.variables[name->id].is_missing()) continue;
      Value value = default_value ? evaluate(*default_value, scope)
                                  : make_undefined("no argument is given for " + quote(name->name), context_.budget);
      set_variable(scope, name->id, std::move(value));
    }
    return make_text(captured([&] { execute(function.block.body, scope); }), context_.budget);
  }

  // Sets the parameters that are given; the others are missing.
  void bind_arguments(const Function& function, const Arguments& arguments, Scope& scope) {
    const auto fail = [&](const std::string& what) { throw Failure("the macro " + quote(function.name) + what); };
    const std::size_t count = function.parameters.size();
    context_.budget.spend(count);
    if (arguments.positional.size() > count) {
      fail(" takes " + std::to_string(count) + " arguments at most; found " +
           std::to_string(arguments.positional.size()));
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Value* const given = arguments.get(i);
      set_variable(scope, function.parameters[i].name->id, given ? *given : Value());
    }
    if (function.takes_caller) set_variable(scope, parsed_.caller, make_undefined("no caller is defined"));
    for (const auto& keyword : arguments.keywords) {
      const std::string_view name = keyword.first;
      context_.budget.spend(count * (1 + name.size() / 256));
      const bool is_caller = function.takes_caller && name == "caller";
      const auto parameter = std::find_if(function.parameters.begin(), function.parameters.end(),
                                          [&](const Parameter& known) { return known.name->name == name; });
      const bool is_parameter = parameter != function.parameters.end();
      if (!is_caller && !is_parameter) fail(" takes no argument " + quote(name));
      const std::size_t id = is_caller ? parsed_.caller : parameter->name->id;
      if (is_parameter && !scope.variables[id].is_missing()) fail(" is given a repeated " + quote(name));
      if (!is_caller || !keyword.second.is_none()) set_variable(scope, id, keyword.second);
    }
  }

  const Template& parsed_;
  const Dict& variables_;
  Context& context_;
  std::size_t& offset_;
  std::vector<std::optional<Value>> globals_;  // by id, when they have been looked up
  std::deque<Scope> scopes_;                   // never freed early: macros may outlive the call that made them
  MarkedText* output_ = nullptr;
  const Value* content_ = nullptr;  // of the surrounding filter block or set block
};

}  // namespace
}  // namespace minimind::jinja

namespace minimind {
namespace {

constexpr std::size_t max_source = std::size_t{256} << 10;  // a parsed template takes up to 160 times its size

[[noreturn]] void fail(const std::string& name, std::string_view source, std::size_t offset, const char* what) {
  const TextPlace place = place_of(offset, source);
  throw Error(fmt::format("{}: line {}, column {}: {}", name, place.line, place.column, what));
}

}  // namespace

JinjaTemplate::JinjaTemplate(std::string_view source, std::string name) : name_(std::move(name)) {
  if (source.size() > max_source) {
    throw Error(fmt::format("{}: is {} bytes long, expected at most {}", name_, source.size(), max_source));
  }
  if (!is_utf8(source)) throw Error(fmt::format("{}: is not UTF-8", name_));
  source_ = jinja::normalized_source(source);
  try {
    parsed_ = std::make_unique<const jinja::Template>(jinja::parse(source_));
  } catch (const jinja::SyntaxError& error) {
    fail(name_, source_, error.offset, error.what());
  }
}

JinjaTemplate::~JinjaTemplate() = default;
JinjaTemplate::JinjaTemplate(JinjaTemplate&&) noexcept = default;
JinjaTemplate& JinjaTemplate::operator=(JinjaTemplate&&) noexcept = default;

MarkedText JinjaTemplate::render_marked(const jinja::Dict& variables, std::time_t now,
                                        const jinja::Limits& limits) const {
  jinja::Context context(limits, now);
  std::size_t offset = 0;
  try {
    return jinja::Interpreter(*parsed_, variables, context, offset).run();
  } catch (const jinja::Failure& failure) {
    fail(name_, source_, offset, failure.what());
  }
}

}  // namespace minimind
