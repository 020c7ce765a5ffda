#include <algorithm>
#include <charconv>

#include "runtime/jinja_format.h"
#include "runtime/jinja_operations.h"
#include "runtime/jinja_show.h"

namespace minimind::jinja {
namespace {

constexpr const char* plain_fields_only = "only {}, {0} and {name} are supported in a format";

// The argument that a field such as {}, {1} or {name} stands for.
class Fields {
 public:
  explicit Fields(const Arguments& arguments) : arguments_(arguments) {}

  const Value& get(std::string_view field) {
    if (field.find_first_of(".[]!:{") != std::string_view::npos) throw Failure(plain_fields_only);
    const bool is_index = field.find_first_not_of("0123456789") == std::string_view::npos;
    if (!is_index) return named(field);
    if (field.empty() ? has_numbers_ : next_ > 0) throw Failure("a format has fields with and without numbers");
    std::size_t index = next_;
    if (field.empty()) {
      ++next_;
    } else {
      has_numbers_ = true;
      if (std::from_chars(field.data(), field.data() + field.size(), index).ec != std::errc()) index = SIZE_MAX;
    }
    if (index >= arguments_.positional.size()) throw Failure("the format has more places than there are arguments");
    return arguments_.positional[index];
  }

 private:
  const Value& named(std::string_view name) const {
    const auto found = std::find_if(arguments_.keywords.begin(), arguments_.keywords.end(),
                                    [&](const auto& keyword) { return keyword.first == name; });
    if (found == arguments_.keywords.end()) throw Failure("the format has a place that no argument is named for");
    return found->second;
  }

  const Arguments& arguments_;
  std::size_t next_ = 0;
  bool has_numbers_ = false;
};

}  // namespace

Value format_fields(Context& context, const Value& subject, const Arguments& arguments) {
  const std::string& format = string_argument(subject, "a format").bytes;
  context.budget.make(format.size());
  Fields fields(arguments);
  std::string result;
  for (std::size_t at = 0; at < format.size(); ++at) {
    const char c = format[at];
    if (c != '{' && c != '}') {
      result += c;
    } else if (at + 1 < format.size() && format[at + 1] == c) {
      result += format[at++];
    } else {
      const std::size_t end = c == '{' ? format.find('}', at) : std::string::npos;
      if (end == std::string::npos) throw Failure("a format has a brace without its counterpart");
      result += shown(fields.get(std::string_view(format).substr(at + 1, end - at - 1)), context.budget);
      at = end;
    }
  }
  return make_text(std::move(result), context.budget);
}

Value formatted(Context& context, const Text& format, const Value& arguments) {
  const std::vector<Value> single = {arguments};
  const List* const list = arguments.list();
  const std::vector<Value>& values = list && list->is_tuple ? list->items : single;
  std::string result;
  std::size_t used = 0;
  for (std::size_t at = 0; at < format.bytes.size(); ++at) {
    if (format.bytes[at] != '%') {
      result += format.bytes[at];
      continue;
    }
    const char directive = ++at < format.bytes.size() ? format.bytes[at] : '\0';
    if (directive == '%') {
      result += '%';
      continue;
    }
    if (directive != 's' && directive != 'r' && directive != 'd' && directive != 'i') {
      throw Failure("only %s, %r, %d, %i and %% are supported in a format");
    }
    if (used == values.size()) throw Failure("the format has more places than there are arguments");
    const Value& value = values[used++];
    if (directive == 's') {
      result += shown(value, context.budget);
    } else if (directive == 'r') {
      const std::string in_list = shown(make_list({value}, context.budget), context.budget);
      result += in_list.substr(1, in_list.size() - 2);  // a list shows the repr() of its items
    } else if (const auto* const number = value.get_if<double>()) {
      throw Failure("formatting a float with %d is not supported: " + std::to_string(*number));
    } else {
      result += std::to_string(integer_argument(value, "an argument for %d"));
    }
  }
  // As in Python, what could be a mapping for %(name)s need not be used.
  const bool may_stay = arguments.dict() || (list && !list->is_tuple) || arguments.is_undefined() || arguments.range();
  if (used < values.size() && !may_stay) throw Failure("the format has fewer places than there are arguments");
  return make_text(std::move(result), context.budget);
}

}  // namespace minimind::jinja
