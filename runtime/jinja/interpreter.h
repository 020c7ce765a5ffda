#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "runtime/jinja/access.h"
#include "runtime/jinja/ast.h"
#include "runtime/jinja/value.h"

namespace minimind::jinja {

// Runs a template once.
class Interpreter {
 public:
  // All arguments must outlive the interpreter.
  Interpreter(const Template& parsed, const Dict& variables, Context& context)
      : parsed_(parsed), variables_(variables), context_(context) {}

  // Returns the rendered text. Throws Failure; offset() is then the position in the template.
  std::string run();
  std::size_t offset() const { return offset_; }

 private:
  struct Frame {
    Frame(std::size_t size, Frame* outside) : slots(size), outer(outside) {}
    std::vector<Value> slots;
    Frame* outer;
  };
  // A macro or the body of a call block as a value.
  struct Macro : Object {
    Macro(const Function& body, Frame& closure) : Object(Kind::macro), function(body), outer(closure) {}
    const Function& function;
    Frame& outer;
  };
  struct FunctionObject : Object {
    explicit FunctionObject(const Builtin& body) : Object(Kind::function), builtin(body) {}
    const Builtin& builtin;
  };
  enum class Flow { next, break_loop, continue_loop };

  // Statements.
  Flow execute(const Body& body, Frame& frame);
  Flow execute(const Statement& statement, Frame& frame);
  Flow execute_if(const Statement& statement, Frame& frame);
  Flow execute_loop(const ForLoop& loop, Frame& frame);
  Flow execute_captured(const Statement& statement, Frame& frame);
  void execute_call_block(const Statement& statement, Frame& frame);
  Items filtered(const ForLoop& loop, Items source, Frame& frame);
  void emit(std::string_view text);
  void assign(const Expression& target, const Value& value, Frame& frame);
  Value& variable(const Variable& place, Frame& frame) const;
  void enter(const Scope& scope, Frame& frame);
  static void leave(const Scope& scope, Frame& frame);
  Value look_up(const std::string& name);
  Frame& new_frame(std::size_t slots, Frame* outer);

  // Expressions.
  Value evaluate(const Expression& expression, Frame& frame);
  Value evaluate_node(const Expression& expression, Frame& frame);
  Value evaluate_sequence(const Expression& expression, Frame& frame);
  Value evaluate_mapping(const Expression& expression, Frame& frame);
  Value evaluate_slice(const Expression& expression, Frame& frame);
  Value evaluate_unary(const Expression& expression, Frame& frame);
  Value evaluate_binary(const Expression& expression, Frame& frame);
  Value evaluate_comparison(const Expression& expression, Frame& frame);
  Value evaluate_concatenation(const Expression& expression, Frame& frame);
  Value evaluate_name(const Expression& expression, Frame& frame);
  Arguments evaluate_arguments(const ArgumentExpressions& arguments, Frame& frame);

  // Calls.
  Value call(const Value& callee, Arguments arguments);
  Value call_method(const Method& method, const Arguments& arguments);
  Value call_macro(const Function& function, Frame& outer, Arguments arguments);
  void bind_arguments(const Function& function, Arguments arguments, Frame& frame);

  const Template& parsed_;
  const Dict& variables_;
  Context& context_;
  std::deque<Frame> frames_;  // never freed early: macros and loops may outlive the call that made them
  std::map<const Builtin*, FunctionObject*> functions_;
  std::string* output_ = nullptr;
  const Value* captured_ = nullptr;
  std::size_t offset_ = 0;
};

}  // namespace minimind::jinja
