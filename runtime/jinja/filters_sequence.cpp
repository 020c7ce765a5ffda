#include <algorithm>

#include "runtime/jinja/attribute_path.h"
#include "runtime/jinja/builtins.h"
#include "runtime/jinja/operations.h"
#include "runtime/jinja/show.h"
#include "runtime/jinja/text.h"

// The filters that work on sequences as a whole.

namespace minimind::jinja {
namespace {

bool flag(const Value* argument) {
  return argument && argument->truth();
}

Value length(Context&, const Value& subject, const Bound&) {
  const auto size = size_of(subject);
  if (!size) throw Failure(subject.kind_name() + " has no length");
  return static_cast<std::int64_t>(*size);
}

Value first(Context& context, const Value& subject, const Bound&) {
  auto item = items_of(context, subject)();
  return item ? std::move(*item) : make_undefined("there is no first item: the sequence is empty");
}

// What Python's reversed() takes: everything with a length.
std::vector<Value> reversed_items(Context& context, const Value& subject) {
  if (!size_of(subject)) throw Failure("cannot go backwards through " + subject.kind_name());
  std::vector<Value> items = all_items_of(context, subject);
  std::reverse(items.begin(), items.end());
  return items;
}

Value last(Context& context, const Value& subject, const Bound&) {
  const std::vector<Value> items = reversed_items(context, subject);
  return items.empty() ? make_undefined("there is no last item: the sequence is empty") : items.front();
}

Value list(Context& context, const Value& subject, const Bound&) {
  return make_list(all_items_of(context, subject), context.budget);
}

Value iterator_over(Context& context, std::vector<Value> items) {
  const Value list = make_list(std::move(items), context.budget);
  return static_cast<Object*>(context.own<Iterator>(items_of(context, list)));
}

Value reverse(Context& context, const Value& subject, const Bound&) {
  if (const Text* const text = subject.text()) {
    if (text->markup) throw Failure("working with escaped text is not supported");
    context.budget.make(text->bytes.size() * sizeof(std::string_view));
    std::vector<std::string_view> characters = characters_of(text->bytes);
    std::string result;
    for (auto character = characters.rbegin(); character != characters.rend(); ++character) result += *character;
    return make_text(std::move(result), context.budget);
  }
  if (size_of(subject)) return iterator_over(context, reversed_items(context, subject));
  std::vector<Value> items = all_items_of(context, subject);
  std::reverse(items.begin(), items.end());
  return make_list(std::move(items), context.budget);
}

Value join(Context& context, const Value& subject, const Bound& arguments) {
  const std::string separator = arguments.get(0) ? shown(arguments.at(0), context.budget) : "";
  const AttributePath path(arguments.get(1));
  std::string result;
  bool is_first = true;
  const Items items = items_of(context, subject);
  while (const auto item = items()) {
    if (!is_first) {
      context.budget.make(separator.size());
      result += separator;
    }
    is_first = false;
    result += shown(path.follow(context, *item), context.budget);
  }
  return make_text(std::move(result), context.budget);
}

struct Keyed {
  Value key;
  Value item;
};

std::vector<Value> sorted(Context& context, std::vector<Keyed> entries, bool reverse) {
  const auto before = [&](const Keyed& a, const Keyed& b) {
    return reverse ? less(b.key, a.key, false, context.budget) : less(a.key, b.key, false, context.budget);
  };
  std::stable_sort(entries.begin(), entries.end(), before);
  std::vector<Value> items;
  items.reserve(entries.size());
  for (Keyed& entry : entries) items.push_back(std::move(entry.item));
  return items;
}

// The paths of an argument such as "age,name".
std::vector<AttributePath> paths_of(const Value* attribute, Budget& budget) {
  const Text* const text = attribute ? attribute->text() : nullptr;
  if (!text) return {AttributePath(attribute)};
  std::vector<AttributePath> paths;
  for (const std::string_view part : split(text->bytes, ",", -1, budget)) {
    const Value name(std::string{part});
    paths.emplace_back(&name);
  }
  return paths;
}

Value sort(Context& context, const Value& subject, const Bound& arguments) {
  const bool case_sensitive = flag(arguments.get(1));
  const std::vector<AttributePath> paths = paths_of(arguments.get(2), context.budget);
  std::vector<Keyed> entries;
  for (Value& item : all_items_of(context, subject)) {
    std::vector<Value> keys;
    for (const AttributePath& path : paths)
      keys.push_back(sort_key(context, path.follow(context, item), case_sensitive));
    entries.push_back({.key = make_list(std::move(keys), context.budget), .item = std::move(item)});
  }
  return make_list(sorted(context, std::move(entries), flag(arguments.get(0))), context.budget);
}

Value dictsort(Context& context, const Value& subject, const Bound& arguments) {
  const bool case_sensitive = flag(arguments.get(0));
  const std::string by = arguments.get(1) ? string_argument(arguments.at(1), "'by'").bytes : "key";
  if (by != "key" && by != "value") throw Failure("a mapping is sorted by 'key' or 'value'");
  require_defined(subject);
  if (!subject.dict()) throw Failure("'dictsort' wants a mapping; found " + subject.kind_name());
  std::vector<Keyed> entries;
  for (const auto& [key, value] : subject.dict()->entries()) {
    entries.push_back({.key = sort_key(context, by == "key" ? key : value, case_sensitive),
                       .item = make_tuple({key, value}, context.budget)});
  }
  return make_list(sorted(context, std::move(entries), flag(arguments.get(2))), context.budget);
}

template <bool wants_largest>
Value extreme(Context& context, const Value& subject, const Bound& arguments) {
  const bool case_sensitive = flag(arguments.get(0));
  const AttributePath path(arguments.get(1));
  std::optional<Keyed> best;
  const Items items = items_of(context, subject);
  while (auto item = items()) {
    Keyed entry{.key = sort_key(context, path.follow(context, *item), case_sensitive), .item = std::move(*item)};
    const bool is_better = !best || (wants_largest ? less(best->key, entry.key, false, context.budget)
                                                   : less(entry.key, best->key, false, context.budget));
    if (is_better) best = std::move(entry);
  }
  return best ? best->item : make_undefined("there is no item to choose: the sequence is empty");
}

Value sum(Context& context, const Value& subject, const Bound& arguments) {
  const AttributePath path(arguments.get(0));
  Value total = arguments.get(1) ? arguments.at(1) : Value(std::int64_t{0});
  if (total.text()) throw Failure("'sum' does not join strings: use 'join'");
  const Items items = items_of(context, subject);
  while (const auto item = items()) {
    total = binary_operation(context, Operator::add, total, path.follow(context, *item));
  }
  return total;
}

Value items(Context& context, const Value& subject, const Bound&) {
  const auto pairs = [&context, subject, source = Items()]() mutable -> std::optional<Value> {
    if (subject.is_undefined()) return std::nullopt;
    const auto* const dict = subject.get_if<Value::DictRef>();
    if (!dict) throw Failure("'items' wants a mapping; found " + subject.kind_name());
    if (!source) {
      source = items_of(context, std::make_shared<const DictView>(DictView{*dict, DictView::Part::items}));
    }
    return source();
  };
  return static_cast<Object*>(context.own<Iterator>(pairs));
}

Value unique(Context& context, const Value& subject, const Bound& arguments) {
  const bool case_sensitive = flag(arguments.get(0));
  const AttributePath path(arguments.get(1));
  const auto seen = std::make_shared<Dict>();
  const auto next = [&context, case_sensitive, path, seen,
                     source = items_of(context, subject)]() -> std::optional<Value> {
    while (auto item = source()) {
      Value key = sort_key(context, path.follow(context, *item), case_sensitive);
      if (seen->find(key)) continue;
      context.budget.make(sizeof(Dict::Entry));
      seen->set(std::move(key), None{});
      return item;
    }
    return std::nullopt;
  };
  return static_cast<Object*>(context.own<Iterator>(next));
}

Value batch(Context& context, const Value& subject, const Bound& arguments) {
  const std::int64_t count = integer_argument(arguments.at(0), "the size of a batch");
  std::vector<Value> batches;
  std::vector<Value> current;
  const Items items = items_of(context, subject);
  while (auto item = items()) {
    if (static_cast<std::int64_t>(current.size()) == count)
      batches.push_back(make_list(std::exchange(current, {}), context.budget));
    current.push_back(std::move(*item));
  }
  if (!current.empty()) {
    const Value* const fill = arguments.get(1);
    if (fill && !fill->is_none() && static_cast<std::int64_t>(current.size()) < count) {
      context.budget.make(static_cast<std::size_t>(count));
      context.budget.make(static_cast<std::size_t>(count) * sizeof(Value));
      current.resize(static_cast<std::size_t>(count), *fill);
    }
    batches.push_back(make_list(std::move(current), context.budget));
  }
  return iterator_over(context, std::move(batches));
}

Value slice(Context& context, const Value& subject, const Bound& arguments) {
  const std::int64_t given = integer_argument(arguments.at(0), "the number of slices");
  if (given == 0) throw Failure("the number of slices is zero");
  const std::size_t count = given < 0 ? 0 : static_cast<std::size_t>(given);
  const std::vector<Value> all = all_items_of(context, subject);
  const Value* const fill = arguments.get(1);
  std::vector<Value> slices;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_longer = i < all.size() % count;
    const std::size_t end = begin + all.size() / count + (is_longer ? 1 : 0);
    std::vector<Value> items(all.begin() + static_cast<std::ptrdiff_t>(begin),
                             all.begin() + static_cast<std::ptrdiff_t>(end));
    if (fill && !fill->is_none() && !is_longer) items.push_back(*fill);
    slices.push_back(make_list(std::move(items), context.budget));
    begin = end;
  }
  return iterator_over(context, std::move(slices));
}

Value group_of(Context& context, Value key, std::vector<Value> items) {
  List pair{.items = {std::move(key), make_list(std::move(items), context.budget)}, .is_tuple = true, .is_group = true};
  pair.depth = 1 + std::max(pair.items[0].depth(), pair.items[1].depth());
  context.budget.make(sizeof(List) + 2 * sizeof(Value));
  return std::make_shared<const List>(std::move(pair));
}

Value groupby(Context& context, const Value& subject, const Bound& arguments) {
  const Value* const otherwise = arguments.get(1);
  const bool has_default = otherwise && !otherwise->is_none();
  const AttributePath path(&arguments.at(0), has_default ? std::optional(*otherwise) : std::nullopt);
  const bool case_sensitive = flag(arguments.get(2));
  const auto key_of = [&](const Value& item) { return sort_key(context, path.follow(context, item), case_sensitive); };
  std::vector<Keyed> entries;
  for (Value& item : all_items_of(context, subject)) {
    Value key = key_of(item);
    entries.push_back({.key = std::move(key), .item = std::move(item)});
  }
  std::vector<Value> groups;
  std::vector<Value> group;
  const auto finish = [&] {
    // The key as the first item has it, not in lower case.
    Value key = path.follow(context, group.front());
    groups.push_back(group_of(context, std::move(key), std::exchange(group, {})));
  };
  for (Value& item : sorted(context, std::move(entries), false)) {
    if (!group.empty() && !equal(key_of(group.front()), key_of(item), context.budget)) finish();
    group.push_back(std::move(item));
  }
  if (!group.empty()) finish();
  return make_list(std::move(groups), context.budget);
}

}  // namespace

const std::vector<Builtin>& sequence_filters() {
  static const std::vector<Builtin> table = {
      {"length", {}, 0, length},
      {"count", {}, 0, length},
      {"first", {}, 0, first},
      {"last", {}, 0, last},
      {"list", {}, 0, list},
      {"reverse", {}, 0, reverse},
      {"join", {"d", "attribute"}, 0, join},
      {"sort", {"reverse", "case_sensitive", "attribute"}, 0, sort},
      {"dictsort", {"case_sensitive", "by", "reverse"}, 0, dictsort},
      {"min", {"case_sensitive", "attribute"}, 0, extreme<false>},
      {"max", {"case_sensitive", "attribute"}, 0, extreme<true>},
      {"sum", {"attribute", "start"}, 0, sum},
      {"items", {}, 0, items},
      {"unique", {"case_sensitive", "attribute"}, 0, unique},
      {"batch", {"linecount", "fill_with"}, 1, batch},
      {"slice", {"slices", "fill_with"}, 1, slice},
      {"groupby", {"attribute", "default", "case_sensitive"}, 1, groupby},
  };
  return table;
}

}  // namespace minimind::jinja
