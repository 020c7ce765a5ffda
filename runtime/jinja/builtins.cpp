#include "runtime/jinja/builtins.h"

#include <algorithm>
#include <ctime>
#include <memory>

#include "runtime/jinja/text.h"
#include "runtime/text/utf8.h"
#include "weights/base/text.h"

namespace minimind::jinja {

const Value* Arguments::find(std::string_view name) const {
  const auto found =
      std::find_if(keywords.begin(), keywords.end(), [&](const auto& keyword) { return keyword.first == name; });
  return found == keywords.end() ? nullptr : &found->second;
}

const Builtin* find_in(const std::vector<Builtin>& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Builtin& entry) { return entry.name == name; });
  return found == table.end() ? nullptr : &*found;
}

Value run_builtin(Context& context, const Builtin& builtin, const Value& subject, Arguments arguments) {
  context.budget.spend(1 + arguments.positional.size() + arguments.keywords.size());
  if (!builtin.parameters) return builtin.run(context, subject, arguments);
  const std::vector<std::string_view>& parameters = *builtin.parameters;
  const auto fail = [&](const std::string& what) { throw Failure(quote(builtin.name) + " " + what); };
  std::vector<Value>& values = arguments.positional;
  if (values.size() > parameters.size()) {
    fail("supports " + std::to_string(parameters.size()) + " arguments at most; found " +
         std::to_string(values.size()));
  }
  values.resize(parameters.size());
  for (const auto& [name, value] : arguments.keywords) {
    const auto parameter = std::find(parameters.begin(), parameters.end(), name);
    const auto index = static_cast<std::size_t>(parameter - parameters.begin());
    if (parameter == parameters.end()) fail("does not support the argument " + quote(name));
    if (!values[index].is_missing()) fail("is given a repeated " + quote(name));
    values[index] = value;
  }
  for (std::size_t i = 0; i < builtin.required; ++i) {
    if (values[i].is_missing()) fail("requires an argument for " + quote(parameters[i]));
  }
  return builtin.run(context, subject, arguments);
}

// The methods of strings and mappings.

namespace {

template <Ends ends>
Value strip(Context& context, const Value& subject, const Arguments& arguments) {
  std::optional<std::string_view> set;
  if (arguments.given(0)) set = string_argument(*arguments.given(0), "what to strip");
  const MarkedText text = text_argument(subject, context.budget);
  return make_text(text.part(stripped(text.bytes, set, ends, context.budget)), context.budget);
}

Value split_text(Context& context, const Value& subject, const Arguments& arguments) {
  std::optional<std::string_view> separator;
  if (arguments.given(0)) separator = string_argument(*arguments.given(0), "the separator");
  const std::int64_t limit = arguments.get(1) ? integer_argument(*arguments.get(1), "the number of cuts") : -1;
  const MarkedText& text = marked_argument(subject, "what to split");
  context.budget.make(text.bytes.size());
  std::vector<Value> parts;
  for (const std::string_view part : split(text.bytes, separator, limit, context.budget)) {
    parts.push_back(make_text(text.part(part), context.budget));
  }
  return make_list(std::move(parts), context.budget);
}

template <bool at_start>
Value has_affix(Context& context, const Value& subject, const Arguments& arguments) {
  const std::string& text = string_argument(subject, "what starts or ends with a text");
  const auto holds = [&](const Value& affix) {
    const std::string& wanted = string_argument(affix, "what a text starts or ends with");
    context.budget.scan(wanted.size());
    return at_start ? text.starts_with(wanted) : text.ends_with(wanted);
  };
  const List* const several = arguments.positional[0].list();
  if (!several || several->kind != List::Kind::tuple) return holds(arguments.positional[0]);
  return std::any_of(several->items.begin(), several->items.end(), holds);
}

Value join_texts(Context& context, const Value& subject, const Arguments& arguments) {
  const MarkedText& separator = marked_argument(subject, "what to join with");
  MarkedText result;
  bool is_first = true;
  for (const Value& item : items_of(context, arguments.positional[0])) {
    const MarkedText& piece = marked_argument(item, "an item to join");
    context.budget.make(piece.bytes.size() + separator.bytes.size());
    if (!std::exchange(is_first, false)) result.append(separator);
    result.append(piece);
  }
  return make_text(std::move(result), context.budget);
}

// format(value, spec), with `d` as the only spec.
MarkedText formatted_field(const Value& value, std::string_view spec, Budget& budget) {
  if (spec.empty()) return shown(value, budget);
  if (spec == "d" && value.get_if<std::int64_t>()) return shown(value, budget);
  throw Failure("the format " + quote(spec) + " of " + value.kind_name() + " is not supported");
}

// Returns the argument that a field such as {} or {name} refers to; `next` is the number of fields before without
// a name.
const Value& field_argument(const Arguments& arguments, std::string_view field, std::size_t& next, Budget& budget) {
  if (!field.empty()) {
    budget.spend(arguments.keywords.size() * (1 + field.size() / 256));
    const Value* const named = arguments.find(field);
    if (!named) throw Failure("the format has the field " + quote(field) + ", expected {} or the name of an argument");
    return *named;
  }
  if (next == arguments.positional.size()) throw Failure("the format has more places than there are arguments");
  return arguments.positional[next++];
}

Value format_text(Context& context, const Value& subject, const Arguments& arguments) {
  const MarkedText& text = marked_argument(subject, "a format");
  const std::string_view format = text.bytes;
  context.budget.make(format.size());
  context.budget.read(format.size());
  std::size_t next = 0;
  MarkedText result;
  for (std::size_t at = 0; at < format.size(); ++at) {
    const char c = format[at];
    if (c != '{' && c != '}') {
      result.append_part(text, format.substr(at, 1));
    } else if (at + 1 < format.size() && format[at + 1] == c) {
      result.append_part(text, format.substr(at++, 1));
    } else {
      const std::size_t end = c == '{' ? format.find('}', at) : std::string_view::npos;
      if (end == std::string_view::npos) throw Failure("a format has an unmatched brace");
      const std::string_view field = format.substr(at + 1, end - at - 1);
      const std::size_t colon = std::min(field.find(':'), field.size());
      const std::string_view spec = field.substr(std::min(colon + 1, field.size()));
      const Value& value = field_argument(arguments, field.substr(0, colon), next, context.budget);
      result.append(formatted_field(value, spec, context.budget));
      at = end;
    }
  }
  return make_text(std::move(result), context.budget);
}

template <List::Kind kind>
Value view_of(Context& context, const Value& subject, const Arguments&) {
  std::vector<Value> items;
  for (const auto& [key, value] : subject.dict()->entries()) {
    if (kind == List::Kind::items) {
      items.push_back(make_list({key, value}, context.budget, List::Kind::tuple));
    } else {
      items.push_back(kind == List::Kind::keys ? key : value);
    }
  }
  return make_list(std::move(items), context.budget, kind);
}

Value get(Context& context, const Value& subject, const Arguments& arguments) {
  const Value* const found = subject.dict()->find(arguments.positional[0], context.budget);
  if (found) return *found;
  return arguments.get(1) ? *arguments.get(1) : Value(None{});
}

}  // namespace

Value strip_both(Context& context, const Value& subject, const Arguments& arguments) {
  return strip<Ends::both>(context, subject, arguments);
}

Value replace(Context& context, const Value& subject, const Arguments& arguments) {
  const std::string& old_text = string_argument(arguments.positional[0], "what to replace");
  const MarkedText& new_text = marked_argument(arguments.positional[1], "what to replace it with");
  const std::int64_t limit = arguments.given(2) ? integer_argument(*arguments.given(2), "the number of times") : -1;
  const MarkedText text = text_argument(subject, context.budget);
  return make_text(replaced(text, old_text, new_text, limit, context.budget), context.budget);
}

namespace {

// The methods of a kind of value. Those that change the value are unsafe: the sandbox hides them.
struct Methods {
  std::vector<Builtin> supported;
  Names unsupported;
  Names unsafe;
};

const Methods& methods_of(const Value& subject) {
  static const Methods of_text = {
      {{"strip", Names{"the chars"}, 0, strip_both},
       {"lstrip", Names{"the chars"}, 0, strip<Ends::left>},
       {"rstrip", Names{"the chars"}, 0, strip<Ends::right>},
       {"split", Names{"sep", "maxsplit"}, 0, split_text},
       {"startswith", Names{"the prefix"}, 1, has_affix<true>},
       {"endswith", Names{"the suffix"}, 1, has_affix<false>},
       {"replace", Names{"the old", "the new", "the count"}, 2, replace},
       {"join", Names{"the iterable"}, 1, join_texts},
       {"format", std::nullopt, 0, format_text},
       {"upper", Names{}, 0, mapped<upper>},
       {"lower", Names{}, 0, mapped<lower>},
       {"capitalize", Names{}, 0, mapped<capitalized>},
       {"title", Names{}, 0, mapped<title>}},
      Names{"casefold",   "center",    "count",        "encode",       "expandtabs", "find",    "format_map",
            "index",      "isalnum",   "isalpha",      "isascii",      "isdecimal",  "isdigit", "isidentifier",
            "islower",    "isnumeric", "isprintable",  "isspace",      "istitle",    "isupper", "ljust",
            "maketrans",  "partition", "removeprefix", "removesuffix", "rfind",      "rindex",  "rjust",
            "rpartition", "rsplit",    "splitlines",   "swapcase",     "translate",  "zfill"},
      Names{}};
  static const Methods of_dict = {{{"get", Names{"the key", "the default"}, 1, get},
                                   {"keys", Names{}, 0, view_of<List::Kind::keys>},
                                   {"values", Names{}, 0, view_of<List::Kind::values>},
                                   {"items", Names{}, 0, view_of<List::Kind::items>}},
                                  Names{"copy", "fromkeys"},
                                  Names{"clear", "pop", "popitem", "setdefault", "update"}};
  static const Methods of_list = {{},
                                  Names{"copy", "count", "index"},
                                  Names{"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"}};
  static const Methods of_tuple = {{}, Names{"count", "index"}, Names{}};
  static const Methods none;
  if (subject.text()) return of_text;
  if (subject.dict()) return of_dict;
  if (!subject.list()) return none;
  return subject.list()->kind == List::Kind::list ? of_list : of_tuple;
}

}  // namespace

const Builtin* find_method(const Value& subject, std::string_view name) {
  const Methods& methods = methods_of(subject);
  const auto is_in = [&](const Names& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  const auto method = [&] { return quote(name) + " of " + subject.kind_name(); };
  if (is_in(methods.unsafe)) throw Failure("access to " + method() + " is unsafe");
  if (is_in(methods.unsupported)) throw Failure("the method " + method() + " is not supported");
  return find_in(methods.supported, name);
}

// The functions that transformers gives to chat templates.

namespace {

Value make_range(Context& context, const Value&, const Arguments& arguments) {
  constexpr std::int64_t max_range = 100'000;  // the limit of Jinja2's sandbox
  const auto number = [&](std::size_t i) { return integer_argument(*arguments.get(i), "the bound of a range"); };
  const std::int64_t start = arguments.get(1) ? number(0) : 0;
  const std::int64_t stop = arguments.get(1) ? number(1) : number(0);
  const std::int64_t step = arguments.get(2) ? number(2) : 1;
  if (step == 0) throw Failure("the step of a range is zero");
  std::vector<Value> items;
  for (__int128 i = start; step > 0 ? i < stop : i > stop; i += step) {
    if (items.size() == max_range) throw Failure("a range is longer than the limit of 100000 numbers");
    items.push_back(static_cast<std::int64_t>(i));
  }
  return make_list(std::move(items), context.budget, List::Kind::range);
}

// dict(mapping, name=value, ...).
Dict dict_of(Context& context, const Arguments& arguments) {
  if (arguments.positional.size() > 1) throw Failure("a mapping is made of one argument and named ones");
  Dict result;
  if (const Value* const source = arguments.get(0)) {
    require_defined(*source);
    if (!source->dict()) throw Failure("a mapping made of " + source->kind_name() + " is not supported");
    for (const auto& [key, value] : source->dict()->entries()) result.set(key, value, context.budget);
  }
  for (const auto& [name, value] : arguments.keywords) result.set(std::string(name), value, context.budget);
  return result;
}

Value make_mapping(Context& context, const Value&, const Arguments& arguments) {
  return make_dict(dict_of(context, arguments), context.budget);
}

Value make_namespace(Context& context, const Value&, const Arguments& arguments) {
  auto* const result = context.own<Namespace>();
  const Dict attributes = dict_of(context, arguments);
  for (const auto& [key, value] : attributes.entries()) {
    result->set(string_argument(key, "the name of an attribute"), value, context.budget);
  }
  return static_cast<Object*>(result);
}

Value raise_exception(Context& context, const Value&, const Arguments& arguments) {
  constexpr std::size_t longest = 4000;  // characters
  const MarkedText text = shown(arguments.positional[0], context.budget);
  const std::string_view start = std::string_view(text.bytes).substr(0, byte_of_character(text.bytes, longest));
  throw Failure(std::string(start) + (start.size() < text.bytes.size() ? "..." : ""));
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

Value strftime_now(Context& context, const Value&, const Arguments& arguments) {
  const MarkedText& text = marked_argument(arguments.positional[0], "the format of a time");
  const std::string& format = text.bytes;
  constexpr std::size_t max_format = 1000;
  if (format.size() > max_format) throw Failure("the format of a time is longer than 1000 bytes");
  if (format.empty()) return Value("");
  std::tm local{};
  localtime_r(&context.now, &local);
  const std::string directives = replace_python_directives(format) + " ";  // never an empty result
  constexpr std::size_t longest = std::size_t{64} << 10;
  context.budget.make(longest);
  std::string result(longest, '\0');
  const std::size_t size = std::strftime(result.data(), result.size(), directives.c_str(), &local);
  if (size == 0) throw Failure("the time is too long to write");
  result.resize(size - 1);
  if (!is_utf8(result)) throw Failure("the time is not UTF-8 in this locale");
  return make_text(text.marks.empty() ? MarkedText(std::move(result)) : MarkedText::all(std::move(result)),
                   context.budget);
}

}  // namespace

const Builtin* find_function(std::string_view name) {
  static const std::vector<Builtin> functions = {
      {"range", Names{"the start", "the stop", "the step"}, 1, make_range},
      {"raise_exception", Names{"message"}, 1, raise_exception},
      {"strftime_now", Names{"format"}, 1, strftime_now},
      {"dict", std::nullopt, 0, make_mapping},
      {"namespace", std::nullopt, 0, make_namespace},
  };
  if (name == "cycler" || name == "joiner" || name == "lipsum") {
    throw Failure("the function " + quote(name) + " is not supported");
  }
  return find_in(functions, name);
}

// Parts of values.

namespace {

Value has_no_attribute(Context& context, const Value& subject, std::string_view name) {
  return make_undefined(subject.kind_name() + " has no attribute " + quote(name), context.budget);
}

// Returns the attribute, without searching the items; std::nullopt if there is none.
std::optional<Value> own_attribute(Context& context, const Value& subject, std::string_view name) {
  constexpr std::size_t comparisons = 16;  // with the attributes of a namespace
  context.budget.scan(comparisons * name.size());
  if (name.starts_with("__") && name.ends_with("__")) {
    throw Failure("attributes of Python such as " + quote(name) + " are not supported");
  }
  if (Object* const object = subject.object()) return object->attribute(name);
  if (subject.method()) throw Failure("attributes of functions are not supported");
  const Builtin* const method = find_method(subject, name);
  if (!method) return std::nullopt;
  context.budget.make(sizeof(Method));
  return Value(std::make_shared<const Method>(Method{.self = subject, .builtin = method}));
}

std::optional<std::size_t> index_in(const Value& key, std::size_t size) {
  const auto index = key.integer();
  if (!index) return std::nullopt;
  const auto count = static_cast<std::int64_t>(size);
  const std::int64_t from_start = *index < 0 ? *index + count : *index;
  if (from_start < 0 || from_start >= count) return std::nullopt;
  return static_cast<std::size_t>(from_start);
}

// Returns whether items have an index.
bool is_sequence(const Value& value) {
  return value.text() || (value.list() && value.list()->is_sequence());
}

// Returns a text whose parts are accessed.
const MarkedText& divisible(const Value& text) {
  return marked_argument(text, "what a part is taken of");
}

// Returns the item, without searching the attributes; std::nullopt if there is none.
std::optional<Value> own_item(Context& context, const Value& subject, const Value& key) {
  if (const Dict* const dict = subject.dict()) {
    if (key.dict() || key.list()) return std::nullopt;
    const Value* const found = dict->find(key, context.budget);
    return found ? std::optional(*found) : std::nullopt;
  }
  const auto index = is_sequence(subject) ? index_in(key, *size_of(subject)) : std::nullopt;
  if (!index) return std::nullopt;
  if (const List* const list = subject.list()) return list->items[*index];
  const MarkedText& text = divisible(subject);
  const std::string_view bytes = text.bytes;
  if (subject.text()->is_ascii()) return make_text(text.part(bytes.substr(*index, 1)), context.budget);
  context.budget.scan(bytes.size());
  const std::string_view rest = bytes.substr(byte_of_character(bytes, *index));
  return make_text(text.part(rest.substr(0, first_utf8(rest).size)), context.budget);
}

std::int64_t clamp_bound(const Value* bound, std::int64_t if_absent, std::int64_t size, bool backwards) {
  if (!bound || bound->is_none()) return if_absent;
  std::int64_t at = integer_argument(*bound, "the bound of a slice");
  if (at < 0) at = std::max(at + size, std::int64_t{backwards ? -1 : 0});
  return std::min(at, backwards ? size - 1 : size);
}

// The part of a sequence that a slice selects.
struct Part {
  std::size_t begin, count;
  bool reversed;
};

Part part_of(std::size_t size, const Value* start, const Value* stop, const Value* step) {
  const auto length = static_cast<std::int64_t>(size);
  const std::int64_t stride = step && !step->is_none() ? integer_argument(*step, "the step of a slice") : 1;
  if (stride != 1 && stride != -1) throw Failure("the step of a slice is not 1 or -1: not supported");
  const bool reversed = stride < 0;
  const std::int64_t from = clamp_bound(start, reversed ? length - 1 : 0, length, reversed);
  const std::int64_t to = clamp_bound(stop, reversed ? -1 : length, length, reversed);
  const std::int64_t count = std::max<std::int64_t>((to - from) * stride, 0);
  return {.begin = static_cast<std::size_t>(reversed ? to + 1 : from),
          .count = static_cast<std::size_t>(count),
          .reversed = reversed};
}

}  // namespace

Value attribute_of(Context& context, const Value& subject, std::string_view name) {
  require_defined(subject);
  if (auto attribute = own_attribute(context, subject, name)) return std::move(*attribute);
  if (subject.dict()) {
    if (auto item = own_item(context, subject, std::string(name))) return std::move(*item);
  }
  return has_no_attribute(context, subject, name);
}

Value item_of(Context& context, const Value& subject, const Value& key) {
  require_defined(subject);
  if (auto item = own_item(context, subject, key)) return std::move(*item);
  const Text* const name = key.text();
  if (!name) {
    const std::string element = key.integer() ? "element " + std::to_string(*key.integer()) : "such element";
    return make_undefined(subject.kind_name() + " has no " + element, context.budget);
  }
  if (auto attribute = own_attribute(context, subject, name->bytes)) return std::move(*attribute);
  return has_no_attribute(context, subject, name->bytes);
}

Value slice_of(Context& context, const Value& subject, const Value* start, const Value* stop, const Value* step) {
  require_defined(subject);
  if (!is_sequence(subject)) throw Failure("cannot take a slice of " + subject.kind_name());
  const Part part = part_of(*size_of(subject), start, stop, step);
  if (subject.text()) {
    const MarkedText& whole = divisible(subject);
    std::string_view text = whole.bytes;
    context.budget.scan(text.size());
    text.remove_prefix(byte_of_character(text, part.begin));
    text = text.substr(0, byte_of_character(text, part.count));
    return make_text(part.reversed ? reversed(whole, text, context.budget) : whole.part(text), context.budget);
  }
  context.budget.make(part.count * sizeof(Value));
  const auto begin = subject.list()->items.begin() + static_cast<std::ptrdiff_t>(part.begin);
  std::vector<Value> items(begin, begin + static_cast<std::ptrdiff_t>(part.count));
  if (part.reversed) std::reverse(items.begin(), items.end());
  return make_list(std::move(items), context.budget, subject.list()->kind);
}

}  // namespace minimind::jinja
