#include "runtime/jinja/builtins.h"

#include <algorithm>
#include <array>

#include "runtime/jinja/lexer.h"
#include "runtime/jinja/tests.h"
#include "weights/io/quote.h"

namespace minimind::jinja {
namespace {

// What Jinja2 has besides.
constexpr std::array unsupported_filters = {"filesizeformat", "forceescape", "pprint",   "random", "striptags",
                                            "urlencode",      "urlize",      "wordwrap", "xmlattr"};

const Builtin* find_in(const std::vector<Builtin>& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Builtin& entry) { return entry.name == name; });
  return found == table.end() ? nullptr : &*found;
}

const Builtin* find_filter(std::string_view name) {
  for (const auto* const table : {&text_filters(), &number_filters(), &sequence_filters(), &selecting_filters()}) {
    if (const Builtin* const found = find_in(*table, name)) return found;
  }
  return nullptr;
}

std::string no_filter(std::string_view name) {
  const bool known =
      std::find(unsupported_filters.begin(), unsupported_filters.end(), name) != unsupported_filters.end();
  return (known ? "unsupported filter " : "unknown filter ") + minimind::quoted(name);
}

std::string no_test(std::string_view name) {
  return "unknown test " + minimind::quoted(name);
}

}  // namespace

void require_filter(std::string_view name, std::size_t offset) {
  if (!find_filter(name)) throw SyntaxError(offset, no_filter(name));
}

void require_test(std::string_view name, std::size_t offset) {
  if (!find_in(tests(), name)) throw SyntaxError(offset, no_test(name));
}

Value apply_filter(Context& context, std::string_view name, const Value& subject, const Arguments& arguments) {
  const Builtin* const filter = find_filter(name);
  if (!filter) throw Failure(no_filter(name));
  return run_builtin(context, *filter, subject, arguments);
}

bool apply_test(Context& context, std::string_view name, const Value& subject, const Arguments& arguments) {
  const Builtin* const test = find_in(tests(), name);
  if (!test) throw Failure(no_test(name));
  return run_builtin(context, *test, subject, arguments).truth();
}

bool is_filter(std::string_view name) {
  return find_filter(name) != nullptr;
}
bool is_test(std::string_view name) {
  return find_in(tests(), name) != nullptr;
}

Value run_builtin(Context& context, const Builtin& builtin, const Value& subject, const Arguments& arguments) {
  context.budget.spend(1);
  if (builtin.run_any) return builtin.run_any(context, subject, arguments);
  const std::vector<std::string_view>& parameters = builtin.parameters;
  const auto fail = [&](const std::string& what) { throw Failure(minimind::quoted(builtin.name) + " " + what); };
  if (arguments.positional.size() > parameters.size()) {
    fail("takes " + std::to_string(parameters.size()) + " arguments at most; found " +
         std::to_string(arguments.positional.size()));
  }
  std::vector<Value> values = arguments.positional;
  values.resize(parameters.size());
  for (const auto& [name, value] : arguments.keywords) {
    const auto parameter = std::find(parameters.begin(), parameters.end(), name);
    const auto index = static_cast<std::size_t>(parameter - parameters.begin());
    if (parameter == parameters.end()) fail("takes no argument " + minimind::quoted(name));
    if (!values[index].is_missing()) fail("is given " + minimind::quoted(name) + " twice");
    values[index] = value;
  }
  for (std::size_t i = 0; i < builtin.required; ++i) {
    if (values[i].is_missing()) fail("wants an argument for " + minimind::quoted(parameters[i]));
  }
  return builtin.run(context, subject, Bound(std::move(values)));
}

}  // namespace minimind::jinja
