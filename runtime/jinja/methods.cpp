#include <algorithm>
#include <array>

#include "runtime/jinja/builtins.h"
#include "runtime/jinja/format.h"
#include "runtime/jinja/operations.h"
#include "runtime/jinja/text.h"
#include "runtime/text/utf8.h"
#include "weights/io/quote.h"

// The methods of texts, mappings and lists.

namespace minimind::jinja {
namespace {

// The methods of str, dict, list and tuple: of those that no table has, templates can ask whether they are there.
constexpr std::array str_methods = {
    "capitalize",   "casefold",   "center",    "count",       "encode",    "endswith",     "expandtabs",   "find",
    "format",       "format_map", "index",     "isalnum",     "isalpha",   "isascii",      "isdecimal",    "isdigit",
    "isidentifier", "islower",    "isnumeric", "isprintable", "isspace",   "istitle",      "isupper",      "join",
    "ljust",        "lower",      "lstrip",    "maketrans",   "partition", "removeprefix", "removesuffix", "replace",
    "rfind",        "rindex",     "rjust",     "rpartition",  "rsplit",    "rstrip",       "split",        "splitlines",
    "startswith",   "strip",      "swapcase",  "title",       "translate", "upper",        "zfill"};
constexpr std::array dict_methods = {"copy", "fromkeys", "get", "items", "keys", "values"};
constexpr std::array dict_mutators = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::array list_methods = {"copy", "count", "index"};
constexpr std::array list_mutators = {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"};
constexpr std::array loop_methods = {"cycle", "changed"};

template <std::size_t n>
bool is_one_of(std::string_view name, const std::array<const char*, n>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const Builtin* find_in(const std::vector<Builtin>& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Builtin& entry) { return entry.name == name; });
  return found == table.end() ? nullptr : &*found;
}

const std::string& bytes_of(const Value& subject) {
  return string_argument(subject, "what a method is called on").bytes;
}

Value text_from(Context& context, std::string_view text) {
  return make_text(std::string(text), context.budget);
}

// An optional text: none is as if it were left out.
std::optional<std::string_view> optional_text(const Value* argument, std::string_view what) {
  if (!argument || argument->is_none()) return std::nullopt;
  return string_argument(*argument, what).bytes;
}

template <Ends ends>
Value strip(Context& context, const Value& subject, const Bound& arguments) {
  const auto set = optional_text(arguments.get(0), "what to strip");
  return text_from(context, stripped(bytes_of(subject), set, ends, context.budget));
}

Value list_of_texts(Context& context, const std::vector<std::string_view>& texts) {
  std::vector<Value> items;
  items.reserve(texts.size());
  for (const std::string_view text : texts) items.push_back(text_from(context, text));
  return make_list(std::move(items), context.budget);
}

template <auto split_text>
Value split_by(Context& context, const Value& subject, const Bound& arguments) {
  const auto separator = optional_text(arguments.get(0), "the separator");
  const std::int64_t limit = arguments.get(1) ? integer_argument(arguments.at(1), "the number of cuts") : -1;
  const std::string& text = bytes_of(subject);
  context.budget.make(text.size());
  return list_of_texts(context, split_text(text, separator, limit, context.budget));
}

Value split_by_lines(Context& context, const Value& subject, const Bound& arguments) {
  const std::string& text = bytes_of(subject);
  context.budget.make(text.size());
  return list_of_texts(context, split_lines(text, arguments.get(0) && arguments.at(0).truth()));
}

// The part of a text that optional arguments `first` and `first` + 1 say, as a slice does; nothing when it would begin
// behind the end.
struct Part {
  std::string_view text;
  std::size_t characters_before;
};
std::optional<Part> part_of(Context& context, const Value& subject, const Bound& arguments, std::size_t first) {
  const Text& text = string_argument(subject, "what a method is called on");
  context.budget.scan(text.bytes.size());
  const auto length = static_cast<std::int64_t>(text.length);
  const auto bound = [&](std::size_t parameter, std::int64_t if_absent) {
    const Value* const given = arguments.get(parameter);
    if (!given || given->is_none()) return if_absent;
    const std::int64_t at = integer_argument(*given, "where to look");
    return at < 0 ? std::max<std::int64_t>(at + length, 0) : at;
  };
  const std::int64_t begin = bound(first, 0);
  const std::int64_t end = std::min(bound(first + 1, length), length);
  if (begin > length || begin > end) return std::nullopt;
  const auto count = static_cast<std::size_t>(begin);
  if (count == 0 && end == length) return Part{.text = text.bytes, .characters_before = 0};
  const std::string_view rest = std::string_view(text.bytes).substr(byte_of_character(text.bytes, count));
  return Part{.text = rest.substr(0, byte_of_character(rest, static_cast<std::size_t>(end - begin))),
              .characters_before = count};
}

bool has_affix(std::string_view text, const Value& affix, bool at_start) {
  const std::string& wanted = string_argument(affix, "what a text starts or ends with").bytes;
  return at_start ? text.starts_with(wanted) : text.ends_with(wanted);
}

template <bool at_start>
Value has_affixes(Context& context, const Value& subject, const Bound& arguments) {
  const auto part = part_of(context, subject, arguments, 1);
  const Value& affix = arguments.at(0);
  const auto holds = [&](const Value& one) { return has_affix(part ? part->text : "", one, at_start) && part; };
  const List* const several = affix.list();
  if (!several || !several->is_tuple) return holds(affix);
  return std::any_of(several->items.begin(), several->items.end(), holds);
}

Value replace(Context& context, const Value& subject, const Bound& arguments) {
  const std::string& old_text = string_argument(arguments.at(0), "what to replace").bytes;
  const std::string& new_text = string_argument(arguments.at(1), "what to replace it with").bytes;
  const std::int64_t limit = arguments.get(2) ? integer_argument(arguments.at(2), "the number of times") : -1;
  const std::string& text = bytes_of(subject);
  context.budget.scan(text.size());
  return make_text(replaced(text, old_text, new_text, limit, context.budget), context.budget);
}

std::optional<std::size_t> find_in_text(Context& context, const Value& subject, const Bound& arguments, bool from_end) {
  const std::string& wanted = string_argument(arguments.at(0), "what to find").bytes;
  const auto part = part_of(context, subject, arguments, 1);
  if (!part) return std::nullopt;
  const auto found = from_end ? find_last(part->text, wanted, context.budget) : find_first(part->text, wanted);
  if (!found) return std::nullopt;
  return part->characters_before + count_characters(part->text.substr(0, *found));
}

template <bool from_end>
Value find(Context& context, const Value& subject, const Bound& arguments) {
  const auto found = find_in_text(context, subject, arguments, from_end);
  return found ? static_cast<std::int64_t>(*found) : std::int64_t{-1};
}

template <bool from_end>
Value index_of_text(Context& context, const Value& subject, const Bound& arguments) {
  const auto found = find_in_text(context, subject, arguments, from_end);
  if (!found) throw Failure("the text has no " + minimind::quoted(arguments.at(0).text()->bytes));
  return static_cast<std::int64_t>(*found);
}

Value count_in_text(Context& context, const Value& subject, const Bound& arguments) {
  const std::string& wanted = string_argument(arguments.at(0), "what to count").bytes;
  const auto part = part_of(context, subject, arguments, 1);
  return part ? static_cast<std::int64_t>(count_occurrences(part->text, wanted)) : std::int64_t{0};
}

Value join(Context& context, const Value& subject, const Bound& arguments) {
  const std::string& separator = bytes_of(subject);
  std::string result;
  bool first = true;
  const Items items = items_of(context, arguments.at(0));
  while (const auto item = items()) {
    const std::string& piece = string_argument(*item, "an item to join").bytes;
    context.budget.make(piece.size() + separator.size());
    if (!first) result += separator;
    first = false;
    result += piece;
  }
  return make_text(std::move(result), context.budget);
}

template <std::string (*map)(std::string_view)>
Value mapped(Context& context, const Value& subject, const Bound&) {
  const std::string& text = bytes_of(subject);
  context.budget.map_case(text.size());
  return make_text(map(text), context.budget);
}

template <bool (*holds)(std::string_view)>
Value asks(Context& context, const Value& subject, const Bound&) {
  const std::string& text = bytes_of(subject);
  context.budget.scan(text.size());
  return holds(text);
}

bool is_space(std::string_view text) {
  const std::vector<std::string_view> all = characters_of(text);
  return !all.empty() && std::all_of(all.begin(), all.end(), [](std::string_view character) {
    return is_python_space(first_utf8(character).code_point);
  });
}

template <bool at_start>
Value without_affix(Context& context, const Value& subject, const Bound& arguments) {
  std::string_view text = bytes_of(subject);
  const std::string& affix = string_argument(arguments.at(0), "what to remove").bytes;
  if (at_start && text.starts_with(affix)) text.remove_prefix(affix.size());
  if (!at_start && text.ends_with(affix)) text.remove_suffix(affix.size());
  return text_from(context, text);
}

template <DictView::Part part>
Value view_of(Context& context, const Value& subject, const Bound&) {
  context.budget.make(sizeof(DictView));
  return std::make_shared<const DictView>(DictView{*subject.get_if<Value::DictRef>(), part});
}

Value get(Context& context, const Value& subject, const Bound& arguments) {
  const Value* const found = find_entry(context, *subject.dict(), arguments.at(0));
  if (found) return *found;
  return arguments.get(1) ? arguments.at(1) : Value(None{});
}

Value count_in_list(Context& context, const Value& subject, const Bound& arguments) {
  const auto& items = subject.list()->items;
  return static_cast<std::int64_t>(std::count_if(
      items.begin(), items.end(), [&](const Value& item) { return equal(item, arguments.at(0), context.budget); }));
}

Value index_in_list(Context& context, const Value& subject, const Bound& arguments) {
  const auto& items = subject.list()->items;
  const auto found = std::find_if(items.begin(), items.end(),
                                  [&](const Value& item) { return equal(item, arguments.at(0), context.budget); });
  if (found == items.end()) throw Failure("the list has no such item");
  return static_cast<std::int64_t>(found - items.begin());
}

Value copy(Context&, const Value& subject, const Bound&) {
  return subject;
}

}  // namespace

const std::vector<Builtin>& text_methods() {
  static const std::vector<Builtin> table = {
      {"strip", {"the chars"}, 0, strip<Ends::both>},
      {"lstrip", {"the chars"}, 0, strip<Ends::left>},
      {"rstrip", {"the chars"}, 0, strip<Ends::right>},
      {"split", {"sep", "maxsplit"}, 0, split_by<split>},
      {"rsplit", {"sep", "maxsplit"}, 0, split_by<split_from_right>},
      {"splitlines", {"keepends"}, 0, split_by_lines},
      {"startswith", {"the prefix", "the start", "the end"}, 1, has_affixes<true>},
      {"endswith", {"the suffix", "the start", "the end"}, 1, has_affixes<false>},
      {"removeprefix", {"the prefix"}, 1, without_affix<true>},
      {"removesuffix", {"the suffix"}, 1, without_affix<false>},
      {"replace", {"the old", "the new", "the count"}, 2, replace},
      {"find", {"the sub", "the start", "the end"}, 1, find<false>},
      {"rfind", {"the sub", "the start", "the end"}, 1, find<true>},
      {"index", {"the sub", "the start", "the end"}, 1, index_of_text<false>},
      {"rindex", {"the sub", "the start", "the end"}, 1, index_of_text<true>},
      {"count", {"the sub", "the start", "the end"}, 1, count_in_text},
      {"join", {"the iterable"}, 1, join},
      {"format", {}, 0, nullptr, format_fields},
      {"upper", {}, 0, mapped<upper>},
      {"lower", {}, 0, mapped<lower>},
      {"title", {}, 0, mapped<title>},
      {"capitalize", {}, 0, mapped<capitalized>},
      {"isupper", {}, 0, asks<is_upper>},
      {"islower", {}, 0, asks<is_lower>},
      {"isspace", {}, 0, asks<is_space>},
  };
  return table;
}

const std::vector<Builtin>& container_methods() {
  static const std::vector<Builtin> table = {
      {"keys", {}, 0, view_of<DictView::Part::keys>},
      {"values", {}, 0, view_of<DictView::Part::values>},
      {"items", {}, 0, view_of<DictView::Part::items>},
      {"get", {"the key", "the default"}, 1, get},
      {"copy", {}, 0, copy},
      {"count", {"the value"}, 1, count_in_list},
      {"index", {"the value"}, 1, index_in_list},
  };
  return table;
}

FoundMethod find_method(const Value& subject, std::string_view name) {
  if (subject.text()) {
    const Builtin* const common = find_in(text_methods(), name);
    return {.exists = is_one_of(name, str_methods),
            .is_safe = true,
            .builtin = common ? common : find_in(layout_methods(), name)};
  }
  if (subject.dict()) {
    if (is_one_of(name, dict_mutators)) return {.exists = true, .is_safe = false, .builtin = nullptr};
    return {.exists = is_one_of(name, dict_methods), .is_safe = true, .builtin = find_in(container_methods(), name)};
  }
  if (const List* const list = subject.list()) {
    if (!list->is_tuple && is_one_of(name, list_mutators))
      return {.exists = true, .is_safe = false, .builtin = nullptr};
    const bool exists = is_one_of(name, list_methods) && !(list->is_tuple && name == "copy");
    return {.exists = exists, .is_safe = true, .builtin = exists ? find_in(container_methods(), name) : nullptr};
  }
  if (subject.object(Object::Kind::loop)) {
    return {.exists = is_one_of(name, loop_methods), .is_safe = true, .builtin = nullptr};
  }
  return {};
}

}  // namespace minimind::jinja
