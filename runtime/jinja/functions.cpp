#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "runtime/jinja/builtins.h"
#include "runtime/jinja/operations.h"
#include "runtime/jinja/show.h"
#include "runtime/text/utf8.h"
#include "weights/io/quote.h"

// The functions that transformers gives to chat templates.

namespace minimind::jinja {
namespace {

constexpr std::size_t max_range = 100'000;  // that of Jinja2's sandbox
constexpr std::array unsupported_functions = {"cycler", "joiner", "lipsum"};

Value make_range(Context& context, const Value&, const Bound& arguments) {
  Range range{.start = 0, .stop = integer_argument(arguments.at(0), "the bound of a range"), .step = 1};
  if (arguments.get(1)) {
    range.start = range.stop;
    range.stop = integer_argument(arguments.at(1), "the end of a range");
  }
  if (arguments.get(2)) range.step = integer_argument(arguments.at(2), "the step of a range");
  if (range.step == 0) throw Failure("the step of a range is zero");
  if (range.size() > max_range) {
    throw Failure("the range has " + std::to_string(range.size()) + " numbers; the limit is " +
                  std::to_string(max_range));
  }
  context.budget.make(sizeof(Range));
  return std::make_shared<const Range>(range);
}

// dict(mapping or pairs, name=value, ...).
Dict dict_of(Context& context, const Arguments& arguments) {
  if (arguments.positional.size() > 1) throw Failure("a mapping is made of one argument and named ones");
  Dict result;
  const auto add = [&](const Value& key, const Value& value) {
    context.budget.make(sizeof(Dict::Entry));
    result.set(key, value);
  };
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    require_defined(source);
    if (const Dict* const dict = source.dict()) {
      for (const auto& [key, value] : dict->entries()) add(key, value);
    } else {
      const Items pairs = items_of(context, source);
      while (const auto pair = pairs()) {
        const std::vector<Value> parts = all_items_of(context, *pair);
        if (parts.size() != 2)
          throw Failure("a mapping is made of pairs; found " + std::to_string(parts.size()) + " items");
        add(parts[0], parts[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.keywords) add(name, value);
  return result;
}

Value make_mapping(Context& context, const Value&, const Arguments& arguments) {
  return make_dict(dict_of(context, arguments), context.budget);
}

Value make_namespace(Context& context, const Value&, const Arguments& arguments) {
  Dict attributes = dict_of(context, arguments);
  for (const auto& [key, value] : attributes.entries()) {
    if (key.text() && key.text()->bytes.starts_with("_")) {
      throw Failure("a namespace cannot hold " + minimind::quoted(key.text()->bytes) + ", which begins with _");
    }
  }
  auto* const result = context.own<Namespace>();
  result->attributes = std::move(attributes);
  return static_cast<Object*>(result);
}

Value raise_exception(Context& context, const Value&, const Bound& arguments) {
  throw Failure(shown(arguments.at(0), context.budget));
}

// datetime.now().strftime(): local time, and nothing for the time zone that a naive time does not have.
std::string replace_python_directives(const std::string& format) {
  std::string result;
  for (std::size_t at = 0; at < format.size(); ++at) {
    const char directive = format[at] == '%' && at + 1 < format.size() ? format[at + 1] : '\0';
    if (directive == '\0') {
      result += format[at];
      continue;
    }
    ++at;
    if (directive == 'f' || directive == ':')
      throw Failure("microseconds and %: in the format of a time are not supported");
    if (directive != 'z' && directive != 'Z') result.append("%").append(1, directive);
  }
  return result;
}

Value strftime_now(Context& context, const Value&, const Bound& arguments) {
  const Text& format = string_argument(arguments.at(0), "the format of a time");
  constexpr std::size_t max_format = 1000;
  if (format.bytes.size() > max_format) throw Failure("the format of a time is longer than 1000 bytes");
  if (format.bytes.empty()) return Value("");
  std::tm local{};
  localtime_r(&context.now, &local);
  const std::string directives = replace_python_directives(format.bytes) + " ";  // never an empty result
  std::string result(std::size_t{64} << 10, '\0');
  const std::size_t size = std::strftime(result.data(), result.size(), directives.c_str(), &local);
  if (size == 0) throw Failure("the time is too long to write");
  result.resize(size - 1);
  if (!is_utf8(result)) throw Failure("the time is not UTF-8 in this locale");
  return make_text(std::move(result), context.budget);
}

}  // namespace

const Builtin* find_function(std::string_view name) {
  static const std::vector<Builtin> table = {
      {"range", {"the start", "the stop", "the step"}, 1, make_range},
      {"raise_exception", {"message"}, 1, raise_exception},
      {"strftime_now", {"format"}, 1, strftime_now},
      {"dict", {}, 0, nullptr, make_mapping},
      {"namespace", {}, 0, nullptr, make_namespace},
  };
  if (std::find(unsupported_functions.begin(), unsupported_functions.end(), name) != unsupported_functions.end()) {
    throw Failure("the function " + minimind::quoted(name) + " is not supported");
  }
  const auto found = std::find_if(table.begin(), table.end(), [&](const Builtin& entry) { return entry.name == name; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace minimind::jinja
