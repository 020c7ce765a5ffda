#include <algorithm>

#include "runtime/jinja/builtins.h"
#include "runtime/jinja/format.h"
#include "runtime/jinja/operations.h"
#include "runtime/jinja/show.h"
#include "runtime/jinja/text.h"
#include "runtime/text/utf8.h"

// The filters that make text.

namespace minimind::jinja {
namespace {

template <std::string (*map)(std::string_view)>
Value mapped(Context& context, const Value& subject, const Bound&) {
  const std::string text = text_argument(context, subject);
  context.budget.map_case(text.size());
  return make_text(map(text), context.budget);
}

Value trim(Context& context, const Value& subject, const Bound& arguments) {
  std::optional<std::string_view> set;
  if (arguments.get(0) && !arguments.at(0).is_none()) set = string_argument(arguments.at(0), "what to trim").bytes;
  const std::string text = text_argument(context, subject);
  return make_text(std::string(stripped(text, set, Ends::both, context.budget)), context.budget);
}

Value replace(Context& context, const Value& subject, const Bound& arguments) {
  const bool limited = arguments.get(2) && !arguments.at(2).is_none();
  const std::int64_t limit = limited ? integer_argument(arguments.at(2), "the number of times") : -1;
  const std::string text = shown(subject, context.budget);
  const std::string old_text = shown(arguments.at(0), context.budget);
  const std::string new_text = shown(arguments.at(1), context.budget);
  return make_text(replaced(text, old_text, new_text, limit, context.budget), context.budget);
}

Value string(Context& context, const Value& subject, const Bound&) {
  if (subject.text()) return subject;
  return make_text(shown(subject, context.budget), context.budget);
}

Value markup(Context& context, std::string text) {
  context.budget.make(text.size());
  Text result(std::move(text));
  result.markup = true;
  return std::make_shared<const Text>(std::move(result));
}

Value safe(Context& context, const Value& subject, const Bound&) {
  return markup(context, shown(subject, context.budget));
}

Value escape(Context& context, const Value& subject, const Bound&) {
  if (subject.text() && subject.text()->markup) return subject;
  return markup(context, escaped_html(shown(subject, context.budget)));
}

std::string indentation(Context& context, const Value* width) {
  if (!width) return "    ";
  if (const Text* const text = width->text()) return text->bytes;
  const std::int64_t count = std::max<std::int64_t>(integer_argument(*width, "the width of an indentation"), 0);
  context.budget.make(static_cast<std::size_t>(count));
  return std::string(static_cast<std::size_t>(count), ' ');
}

Value indent(Context& context, const Value& subject, const Bound& arguments) {
  const std::string text = string_argument(subject, "what to indent").bytes + "\n";
  const std::string indention = indentation(context, arguments.get(0));
  const bool first = arguments.get(1) && arguments.at(1).truth();
  const bool blank = arguments.get(2) && arguments.at(2).truth();
  context.budget.make(text.size() * 2);
  std::string result = first ? indention : "";
  bool is_first = true;
  for (const std::string_view line : split_lines(text, false)) {
    context.budget.make(line.size() + indention.size() + 1);
    if (!is_first) result += '\n';
    if (!is_first && (blank || !line.empty())) result += indention;
    is_first = false;
    result += line;
  }
  return make_text(std::move(result), context.budget);
}

Value center(Context& context, const Value& subject, const Bound& arguments) {
  const std::string text = text_argument(context, subject);
  const std::int64_t width = arguments.get(0) ? integer_argument(arguments.at(0), "the width") : 80;
  const std::int64_t padding = width - static_cast<std::int64_t>(count_characters(text));
  if (padding <= 0) return make_text(text, context.budget);
  context.budget.make(static_cast<std::size_t>(padding));
  const auto left = static_cast<std::size_t>(padding / 2 + (padding & width & 1));
  return make_text(std::string(left, ' ') + text + std::string(static_cast<std::size_t>(padding) - left, ' '),
                   context.budget);
}

Value format(Context& context, const Value& subject, const Arguments& arguments) {
  const Text text(text_argument(context, subject));
  if (arguments.keywords.empty()) return formatted(context, text, make_tuple(arguments.positional, context.budget));
  if (!arguments.positional.empty()) throw Failure("a format takes named arguments or others, not both");
  Dict named;
  for (const auto& [name, value] : arguments.keywords) named.set(name, value);
  return formatted(context, text, make_dict(std::move(named), context.budget));
}

Value count_words(Context& context, const Value& subject, const Bound&) {
  const std::string text = text_argument(context, subject);
  context.budget.map_case(text.size());
  std::int64_t count = 0;
  bool in_word = false;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char character = first_utf8(std::string_view(text).substr(at));
    const bool was_in_word = std::exchange(in_word, is_python_word(character.code_point));
    count += in_word && !was_in_word ? 1 : 0;
    at += character.size;
  }
  return count;
}

Value truncate(Context& context, const Value& subject, const Bound& arguments) {
  const auto number = [&](std::size_t parameter, std::int64_t if_absent, std::string_view what) {
    const Value* const given = arguments.get(parameter);
    return given ? integer_argument(*given, what) : if_absent;
  };
  const std::int64_t length = number(0, 255, "the length");
  const bool cuts_words = arguments.get(1) && arguments.at(1).truth();
  const Text end = arguments.get(2) ? string_argument(arguments.at(2), "the end") : Text("...");
  const bool has_leeway = arguments.get(3) && !arguments.at(3).is_none();
  const std::int64_t leeway = has_leeway ? number(3, 0, "the leeway") : 5;
  if (length < static_cast<std::int64_t>(end.length)) throw Failure("the length is less than that of the end");
  if (leeway < 0) throw Failure("the leeway is negative");
  const auto size = size_of(subject);
  if (size && static_cast<std::int64_t>(*size) - length <= leeway) return subject;
  const Text& text = string_argument(subject, "what to truncate");
  const auto kept = static_cast<std::size_t>(length) - end.length;
  std::string result = text.bytes.substr(0, byte_of_character(text.bytes, kept));
  if (!cuts_words) result.resize(std::min(result.rfind(' '), result.size()));
  return make_text(result + end.bytes, context.budget);
}

JsonStyle json_style(const Bound& arguments, Budget& budget) {
  JsonStyle style;
  style.ensure_ascii = arguments.get(0) && arguments.at(0).truth();
  if (const Value* const indent = arguments.get(1); indent && !indent->is_none()) {
    if (const Text* const text = indent->text()) {
      style.indent = text->bytes;
    } else {
      const std::int64_t width = std::max<std::int64_t>(integer_argument(*indent, "the indentation of JSON"), 0);
      budget.make(static_cast<std::size_t>(width));
      style.indent = std::string(static_cast<std::size_t>(width), ' ');
    }
    style.item_separator = ",";
  }
  if (const Value* const separators = arguments.get(2); separators && !separators->is_none()) {
    const List* const pair = separators->list();
    if (!pair || pair->items.size() != 2) throw Failure("the separators of JSON are no pair of strings");
    style.item_separator = string_argument(pair->items[0], "a separator of JSON").bytes;
    style.key_separator = string_argument(pair->items[1], "a separator of JSON").bytes;
  }
  style.sort_keys = arguments.get(3) && arguments.at(3).truth();
  return style;
}

Value tojson(Context& context, const Value& subject, const Bound& arguments) {
  return make_text(to_json(subject, json_style(arguments, context.budget), context.budget), context.budget);
}

Value if_undefined(Context&, const Value& subject, const Bound& arguments) {
  const bool replace_false = arguments.get(1) && arguments.at(1).truth();
  if (!subject.is_undefined() && !(replace_false && !subject.truth())) return subject;
  return arguments.get(0) ? arguments.at(0) : Value("");
}

}  // namespace

const std::vector<Builtin>& text_filters() {
  static const std::vector<Builtin> table = {
      {"upper", {}, 0, mapped<upper>},
      {"lower", {}, 0, mapped<lower>},
      {"capitalize", {}, 0, mapped<capitalized>},
      {"title", {}, 0, mapped<title_words>},
      {"trim", {"chars"}, 0, trim},
      {"replace", {"old", "new", "count"}, 2, replace},
      {"string", {}, 0, string},
      {"safe", {}, 0, safe},
      {"escape", {}, 0, escape},
      {"e", {}, 0, escape},
      {"indent", {"width", "first", "blank"}, 0, indent},
      {"center", {"width"}, 0, center},
      {"format", {}, 0, nullptr, format},
      {"wordcount", {}, 0, count_words},
      {"truncate", {"length", "killwords", "end", "leeway"}, 0, truncate},
      {"tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, tojson},
      {"default", {"default_value", "boolean"}, 0, if_undefined},
      {"d", {"default_value", "boolean"}, 0, if_undefined},
  };
  return table;
}

}  // namespace minimind::jinja
