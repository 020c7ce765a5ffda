#include "runtime/jinja/methods.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "runtime/jinja/operations.h"
#include "runtime/jinja/show.h"
#include "runtime/jinja/text.h"
#include "runtime/text/unicode.h"
#include "runtime/text/utf8.h"
#include "weights/io/quote.h"

namespace minimind::jinja {

// The methods of strings, mappings and lists.

namespace {

// The methods of str, dict, list and tuple that templates can test for, although no table has them.
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

template <std::size_t n>
bool is_one_of(std::string_view name, const std::array<const char*, n>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const std::string& bytes_of(const Value& subject) {
  return string_argument(subject, "what a method is called on").bytes;
}

Value text_from(Context& context, std::string_view text) {
  return make_text(std::string(text), context.budget);
}

// An optional string: none counts as omitted.
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

// The part of a string that optional arguments `first` and `first` + 1 select, as a slice does; std::nullopt if it
// would start after the end.
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

Value replace_in_text(Context& context, const Value& subject, const Bound& arguments) {
  const std::string& old_text = string_argument(arguments.at(0), "what to replace").bytes;
  const std::string& new_text = string_argument(arguments.at(1), "what to replace it with").bytes;
  const std::int64_t limit = arguments.get(2) ? integer_argument(arguments.at(2), "the number of times") : -1;
  const std::string& text = bytes_of(subject);
  context.budget.scan(text.size());
  return make_text(replaced(text, old_text, new_text, limit, context.budget), context.budget);
}

template <bool from_end>
Value find(Context& context, const Value& subject, const Bound& arguments) {
  const std::string& wanted = string_argument(arguments.at(0), "what to find").bytes;
  const auto part = part_of(context, subject, arguments, 1);
  if (!part) return std::int64_t{-1};
  const auto found = from_end ? find_last(part->text, wanted, context.budget) : find_first(part->text, wanted);
  if (!found) return std::int64_t{-1};
  return static_cast<std::int64_t>(part->characters_before + count_characters(part->text.substr(0, *found)));
}

Value count_in_text(Context& context, const Value& subject, const Bound& arguments) {
  const std::string& wanted = string_argument(arguments.at(0), "what to count").bytes;
  const auto part = part_of(context, subject, arguments, 1);
  return part ? static_cast<std::int64_t>(count_occurrences(part->text, wanted)) : std::int64_t{0};
}

Value join_texts(Context& context, const Value& subject, const Bound& arguments) {
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
Value mapped_text(Context& context, const Value& subject, const Bound&) {
  const std::string& text = bytes_of(subject);
  context.budget.map_case(text.size());
  return make_text(map(text), context.budget);
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
      {"replace", {"the old", "the new", "the count"}, 2, replace_in_text},
      {"find", {"the sub", "the start", "the end"}, 1, find<false>},
      {"rfind", {"the sub", "the start", "the end"}, 1, find<true>},
      {"count", {"the sub", "the start", "the end"}, 1, count_in_text},
      {"join", {"the iterable"}, 1, join_texts},
      {"format", {}, 0, nullptr, format_fields},
      {"upper", {}, 0, mapped_text<upper>},
      {"lower", {}, 0, mapped_text<lower>},
      {"title", {}, 0, mapped_text<title>},
      {"capitalize", {}, 0, mapped_text<capitalized>},
  };
  return table;
}

const std::vector<Builtin>& mapping_methods() {
  static const std::vector<Builtin> table = {
      {"keys", {}, 0, view_of<DictView::Part::keys>},
      {"values", {}, 0, view_of<DictView::Part::values>},
      {"items", {}, 0, view_of<DictView::Part::items>},
      {"get", {"the key", "the default"}, 1, get},
  };
  return table;
}

}  // namespace

const Builtin* find_in(const std::vector<Builtin>& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Builtin& entry) { return entry.name == name; });
  return found == table.end() ? nullptr : &*found;
}

FoundMethod find_method(const Value& subject, std::string_view name) {
  if (subject.text()) {
    return {.exists = is_one_of(name, str_methods), .is_safe = true, .builtin = find_in(text_methods(), name)};
  }
  if (subject.dict()) {
    if (is_one_of(name, dict_mutators)) return {.exists = true, .is_safe = false, .builtin = nullptr};
    return {.exists = is_one_of(name, dict_methods), .is_safe = true, .builtin = find_in(mapping_methods(), name)};
  }
  if (const List* const list = subject.list()) {
    if (!list->is_tuple && is_one_of(name, list_mutators))
      return {.exists = true, .is_safe = false, .builtin = nullptr};
    const bool exists = is_one_of(name, list_methods) && !(list->is_tuple && name == "copy");
    return {.exists = exists, .is_safe = true, .builtin = nullptr};
  }
  return {};
}

// The functions that transformers gives to chat templates.

namespace {

constexpr std::size_t max_range = 100'000;  // the limit of Jinja2's sandbox
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
    throw Failure("the range has " + std::to_string(range.size()) + " numbers, expected at most " +
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
          throw Failure("a mapping has an entry of " + std::to_string(parts.size()) + " items, expected pairs");
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
      throw Failure("a namespace cannot have " + quote(key.text()->bytes) + ", which starts with _");
    }
  }
  auto* const result = context.own<Namespace>();
  result->attributes = std::move(attributes);
  return static_cast<Object*>(result);
}

Value raise_exception(Context& context, const Value&, const Bound& arguments) {
  throw Failure(shown(arguments.at(0), context.budget));
}

// datetime.now().strftime(): local time, with an empty time zone, because Python's naive time has none.
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
    throw Failure("the function " + quote(name) + " is not supported");
  }
  return find_in(table, name);
}

}  // namespace minimind::jinja
