#include "runtime/json_schema/json_schema.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "runtime/grammar/work.h"
#include "runtime/json_schema/json_texts.h"
#include "runtime/json_schema/place_sets.h"
#include "runtime/json_schema/schema_nodes.h"
#include "runtime/json_schema/schema_reader.h"
#include "runtime/json_schema/schema_shapes.h"
#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/input_file.h"
#include "weights/io/json_fields.h"
#include "weights/io/text_file.h"

namespace minimind {
namespace {

// A schema as rules of a grammar.
class SchemaRulesSource : public GrammarRulesSource {
 public:
  // Throws SchemaError if no value is valid by the schema.
  SchemaRulesSource(std::unique_ptr<SchemaNodes> nodes, const SchemaStyle& style, JsonWhitespace whitespace);

  std::unique_ptr<GrammarRules> start() const override;

 private:
  friend class SchemaRules;

  const JsonWhitespace whitespace_;

  // Worked out as far as texts needed it.
  mutable std::mutex mutex_;
  std::unique_ptr<SchemaNodes> nodes_;
  mutable SchemaShapes shapes_;
  ShapeId root_;
};

// The rules for one text.
class SchemaRules : public GrammarRules {
 public:
  explicit SchemaRules(const SchemaRulesSource& source)
      : source_(source), shapes_(source.shapes_), style_(source.shapes_.style()) {}

  std::uint32_t root() override { return id_of({Kind::document}); }
  Facts facts(std::uint32_t rule) override;
  std::vector<Sequence> alternatives(std::uint32_t rule) override;
  Rest skip(std::uint32_t rule, std::string_view bytes) override;

 private:
  enum class Kind : std::uint8_t {
    document,
    space,         // between the parts of a text; a is a Space
    indent,        // at most a spaces
    value,         // of the shape a
    text,          // the rest of a string: from state b of the automaton a; its quote included
    name,          // the rest of a property's name: from state b of the automaton a; its quote included
    lengths,       // the rest of a string of a to b - 1 characters (0: any number)
    bounded,       // the rest of a string of strings_[a], from state b, after c characters
    number,        // the rest of a number: from state b of the automaton a; of a multiple if c: places_[c - 1]
    unplain,       // a character of sets_[a] and the rule b
    character,     // of sets_[a]; b: beside plain ones after which there are as many more
    object_start,  // after the brace, of objects_[a]
    object_next,   // after a member
    member,        // a member and all that follows
    named,         // the rest of a member's name in the trie: from node b, of objects_[a]
    fixed,         // the rest of a name: fixed_[a], its quote included
    named_value,   // after the name of property b, of objects_[a]
    array_start,   // after the bracket, of arrays_[a]
    array_next,    // after an item
  };
  enum class Space : std::uint32_t { inside, after_comma, after_colon, before };

  struct Rule {
    Kind kind = Kind::document;
    std::uint32_t a = 0, b = 0, c = 0;
    bool operator==(const Rule&) const = default;
  };
  struct HashRule {
    std::size_t operator()(const Rule& rule) const {
      std::uint64_t key = (std::uint64_t{rule.a} << 32 | rule.b) * 0x9E3779B97F4A7C15u;
      key = (key ^ key >> 32 ^ rule.c) * 0x2545F4914F6CDD1Du;
      return (key ^ key >> 32) + static_cast<std::size_t>(rule.kind);
    }
  };

  // The names of an object's properties, as a trie over their sorted list. Nodes of at most most_apart names have no
  // children.
  struct Trie {
    struct Node {
      std::uint32_t begin, end;  // in `order`
      std::uint32_t depth;
      std::uint64_t bytes;  // of a text, up to here
      std::vector<std::pair<char32_t, std::uint32_t>> children;
    };
    std::vector<std::u32string> names;  // [properties]
    std::vector<std::uint32_t> order;
    std::vector<std::uint32_t> places;                     // [properties], in `order`
    std::vector<const std::vector<std::uint32_t>*> rests;  // [properties], of rests_; null if not worked out
    std::vector<Node> nodes;
    PlaceSets sets;  // of places in `order`, with the bytes of each unless properties are in order
    PlaceSets::Set all = 0;
    // If there must be more properties than those that are required, unless they are in order: the others by their
    // bytes, and the place of each.
    PlaceSets spares;
    PlaceSets::Set all_spares = 0;
    std::vector<std::uint32_t> spare_places;  // [properties]
    // If they are in order: the properties from each to the next required one, worked out when a text comes there.
    PlaceSets costs;
    std::vector<std::optional<PlaceSets::Set>> next;  // [properties], of `costs`
  };

  // How much of an object is written.
  struct Progress {
    const ObjectCase* what;
    PlaceSets::Set unseen = 0;  // of `properties`
    PlaceSets::Set spares = 0;
    std::size_t seen = 0, others = 0;
    std::uint32_t some = 0;           // a bit for each that is fulfilled
    std::size_t next = 0;             // the first property that may follow, if they are in order
    std::size_t missing = 0;          // required properties
    std::uint64_t missing_bytes = 0;  // of their members

    std::size_t count() const { return seen + others; }
    // How many more properties must follow than those that are missing.
    std::size_t more() const { return what->min - std::min(what->min, count() + missing); }
  };
  struct OtherMember {
    AutomatonId names;
    ShapeId value;
    std::uint32_t after;  // in objects_
  };
  struct Object {
    Progress progress;
    std::vector<std::uint64_t> members;  // [properties], the bytes of the value and the rest; empty if not worked out
    std::optional<std::uint64_t> bytes, member_bytes;  // of the rest and of the shortest member, if worked out
    std::optional<std::vector<OtherMember>> others;    // until its members are alternatives
  };
  struct Array {
    const ArrayCase* what;
    SchemaShapes::ArrayProgress progress;
  };

  static Symbol rule(std::uint32_t id) { return {true, id, {}}; }
  static Symbol bytes(const ByteSet& set, JsonEvent event = JsonEvent::none) { return {false, 0, set, event}; }
  static Symbol byte(char c, JsonEvent event = JsonEvent::none) {
    return bytes(ByteSet().set(static_cast<unsigned char>(c)), event);
  }
  static Sequence literal(std::string_view text) {
    Sequence result;
    for (const char c : text) result.push_back(byte(c));
    return result;
  }

  std::uint32_t id_of(const Rule& rule);
  Symbol use(const Rule& rule) { return this->rule(id_of(rule)); }
  Symbol space(Space where) { return use({Kind::space, static_cast<std::uint32_t>(where)}); }
  Symbol value(ShapeId shape) { return use({Kind::value, shape}); }
  std::uint32_t set_of(const CodePoints& set);
  void set_runs(std::vector<Sequence>& alternatives, const Rule& rest);
  TextRun run_of(const Rule& rest, TextKind kind);
  void add_character(std::vector<Sequence>& alternatives, const CodePoints& set, const Rule& rest);

  std::uint32_t string_of(const StringCase& string);
  std::uint32_t object_of(const Progress& progress);
  std::vector<std::uint32_t> left_of(const Progress& progress);
  // Bytes of the properties that must follow beyond those that are missing, and of the longest of them.
  struct More {
    std::uint64_t all = 0, longest = 0;
  };
  // Returns true if no conditions or order decide on what must follow.
  bool is_plain(const Progress& progress) const {
    return progress.what->some.empty() && progress.missing_bytes < no_text && (!style_.closed || progress.more() == 0);
  }
  More more_of(const Progress& progress);
  void add_spares(const ObjectCase* what, Trie& trie);
  Progress start_of(const ObjectCase* what);
  Progress with_property(Progress progress, std::uint32_t property);
  SchemaShapes::ObjectProgress progress_of(const Progress& progress);
  std::uint64_t rest_of(const Progress& progress);
  std::uint64_t rest_of(std::uint32_t object);
  static bool may_close(const Progress& progress);
  std::uint32_t array_of(const ArrayCase* what, SchemaShapes::ArrayProgress progress);
  Trie& trie_of(const ObjectCase* what);
  std::uint32_t rest_of_name(Trie& trie, std::uint32_t property, std::uint32_t depth);
  static void add_children(Trie& trie, std::uint32_t node);
  std::uint64_t bytes_of(const ObjectCase::Property& property);
  PlaceSets::Least cost_of(const ObjectCase::Property& property);
  PlaceSets::Set next_in_order(const Progress& progress, Trie& trie);
  std::uint64_t least_of(const Progress& progress, std::uint32_t begin, std::uint32_t end);
  bool may_follow(Object& object, std::uint32_t property);
  void work_out_members(Object& object);
  const std::vector<OtherMember>& other_members(std::uint32_t object);
  std::vector<OtherMember> make_other_members(std::uint32_t object);
  std::uint64_t shortest_member(std::uint32_t object);
  std::uint64_t shortest_named(std::uint32_t object, std::uint32_t node);
  std::uint64_t shortest_value(std::uint32_t object, std::uint32_t property);
  std::uint64_t bytes_of(const Rule& rule);

  std::vector<Sequence> spellings(const CodePoints& set) const;
  std::vector<Sequence> spaces(Space where);
  Sequence closing(bool empty, const Symbol& bracket);
  std::vector<Sequence> values(ShapeId shape);
  Rule start_of(Kind kind, AutomatonId automaton) {
    const Automata::Place place = shapes_.automata().place_of(automaton, 0);
    return {kind, place.automaton, place.state};
  }
  std::vector<Sequence> rest_of_text(const Rule& rule);
  std::vector<Sequence> rest_of_lengths(const Rule& rule);
  std::vector<Sequence> rest_of_bounded(const Rule& rule);
  std::uint32_t place_of(const Multiples* multiples, const Multiples::Place& place);
  bool number_ends(const Rule& rule);
  std::vector<Sequence> rest_of_multiple(const Rule& rule);
  std::vector<Sequence> rest_of_number(const Rule& rule);
  bool take(Rule& rule, char32_t character);
  std::vector<Sequence> members(std::uint32_t object);
  std::vector<Sequence> rest_of_named(const Rule& rule);
  std::vector<Sequence> rest_of_fixed(const Rule& rule);
  std::vector<Sequence> rest_of_array(const Rule& rule);
  void add_value_of_member(Sequence& sequence, ShapeId shape, std::uint32_t after);

  const SchemaRulesSource& source_;
  SchemaShapes& shapes_;
  const SchemaStyle style_;
  std::vector<Rule> rules_;
  std::unordered_map<Rule, std::uint32_t, HashRule> ids_;
  std::vector<StringCase> strings_;
  std::map<StringCase, std::uint32_t> string_ids_;
  std::deque<Object> objects_;
  std::deque<Object*> worked_out_;  // the last ones with `members`: each has as many as the schema has properties
  using ObjectKey = std::tuple<const ObjectCase*, PlaceSets::Set, std::size_t, std::uint32_t, std::size_t>;
  std::map<ObjectKey, std::uint32_t> object_ids_;
  std::unordered_map<std::vector<std::uint32_t>, std::uint32_t, HashOfNodes> objects_left_;  // by left_of()
  std::vector<std::pair<const Multiples*, Multiples::Place>> places_;
  std::map<std::pair<const Multiples*, Multiples::Place>, std::uint32_t> place_ids_;
  std::deque<Array> arrays_;
  std::map<std::pair<const ArrayCase*, SchemaShapes::ArrayProgress>, std::uint32_t> array_ids_;
  std::unordered_map<const ObjectCase*, Trie> tries_;
  // The rests of names that are certain, which all objects share, so that a text follows each once.
  struct Fixed {
    char32_t next = 0;
    std::uint32_t after = 0;  // in fixed_
    std::uint64_t bytes = 0;
  };
  std::vector<Fixed> fixed_ = std::vector<Fixed>(1);  // 0: nothing but the quote
  std::map<std::pair<char32_t, std::uint32_t>, std::uint32_t> fixed_ids_;
  std::unordered_map<std::u32string, std::vector<std::uint32_t>> rests_;  // [depth], in fixed_, by the name
  std::vector<CodePoints> sets_;
  std::map<std::vector<std::pair<char32_t, char32_t>>, std::uint32_t> set_ids_;
};

constexpr std::size_t most_rules = 4'000'000;
constexpr std::size_t most_worked_out = 64;
// Names of an object that are followed apart from each other, as those of other objects are.
constexpr std::size_t most_apart = 4;
// Properties of an object that is compared with others.
constexpr std::size_t most_compared = 64;
// Of what is worked out of a schema before its first text; the rest, if any, is worked out when a text needs it.
constexpr std::size_t most_steps_beforehand = 5'000'000;
constexpr std::uint32_t longest_indent = 64;

std::uint64_t shortest_character(const CodePoints& set) {
  std::uint64_t shortest = no_text;
  for (const CodePoints::Range& range : set.ranges()) {
    shortest = std::min(shortest, json_bytes_of(range.first, range.last));
  }
  return shortest;
}

SchemaRulesSource::SchemaRulesSource(std::unique_ptr<SchemaNodes> nodes, const SchemaStyle& style,
                                     JsonWhitespace whitespace)
    : whitespace_(whitespace),
      nodes_(std::move(nodes)),
      shapes_(*nodes_, style),
      root_(shapes_.shape_of({nodes_->root()})) {
  const JsonTypes meant = nodes_->types_meant(nodes_->root());
  if (style.closed && meant != all_types) {
    SchemaNode of_types;
    of_types.pointer = "#";
    of_types.types = meant;
    root_ = shapes_.shape_of({nodes_->root(), nodes_->add(std::move(of_types))});
  }
  if (shapes_.bytes(root_) >= no_text) nodes_->fail(nodes_->root(), "no value is valid by this schema");
  // What is not supported of them shows in the cases only.
  if (nodes_->has_unevaluated()) shapes_.explore(root_);
  if (!style.any_spelling) shapes_.leave_out_what_is_too_complex();
  try {
    const WorkLimit limit(most_steps_beforehand, "the schema");
    shapes_.prepare(root_);
  } catch (const TooMuchWork&) {
  }
}

std::unique_ptr<GrammarRules> SchemaRulesSource::start() const {
  return std::make_unique<SchemaRules>(*this);
}

std::uint32_t SchemaRules::id_of(const Rule& rule) {
  const auto [place, added] = ids_.try_emplace(rule, static_cast<std::uint32_t>(rules_.size()));
  if (added) {
    if (rules_.size() == most_rules) throw Error("the text needs too many rules of its schema; shorten it");
    rules_.push_back(rule);
  }
  return place->second;
}

std::uint32_t SchemaRules::set_of(const CodePoints& set) {
  std::vector<std::pair<char32_t, char32_t>> key;
  for (const CodePoints::Range& range : set.ranges()) key.emplace_back(range.first, range.last);
  const auto [place, added] = set_ids_.try_emplace(std::move(key), static_cast<std::uint32_t>(sets_.size()));
  if (added) sets_.push_back(set);
  return place->second;
}

// Returns up to which length the rest of a string takes every text of the kind.
void SchemaRules::set_runs(std::vector<Sequence>& alternatives, const Rule& rest) {
  std::array<TextRun, text_kinds> runs;
  for (std::size_t kind = 0; kind < text_kinds; ++kind) runs[kind] = run_of(rest, static_cast<TextKind>(kind));
  for (Sequence& alternative : alternatives) alternative.front().runs = runs;
}

GrammarRules::TextRun SchemaRules::run_of(const Rule& rest, TextKind kind) {
  const auto run = [&](std::size_t characters, std::uint64_t bytes, std::uint64_t bytes_before) {
    const auto count = static_cast<std::uint16_t>(std::min<std::size_t>(characters, TextRun::any));
    return TextRun{count, rest.kind == Kind::lengths ? count : TextRun::any,
                   static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes - std::min(bytes, bytes_before), ~0U))};
  };
  if (rest.kind == Kind::lengths) return run(rest.b == 0 ? TextRun::any : rest.b - 1, 0, 0);
  if (rest.kind != Kind::bounded) {
    const Automata::Run& its = shapes_.automata().runs(rest.a, kind)[rest.b];
    return run(its.characters, its.bytes, shapes_.automata().bytes(rest.a)[rest.b]);
  }
  const BoundedStrings& lengths = shapes_.bounded(strings_[rest.a]);
  if (rest.c >= lengths.safe_length()) return {};
  const Automata::Run& its = shapes_.automata().runs(*strings_[rest.a].automaton, kind)[rest.b];
  return run(std::min<std::size_t>(its.characters, lengths.safe_length() - rest.c), lengths.most_bytes(),
             lengths.bytes(rest.b, rest.c));
}

// Adds a character of the set and the rest. The characters of one byte, which most are, need no rules of their own, and
// the others have one that all ways to the same rest share.
void SchemaRules::add_character(std::vector<Sequence>& alternatives, const CodePoints& set, const Rule& rest) {
  ByteSet plain;
  CodePoints others = set;
  if (!style_.any_spelling) {
    others = CodePoints();
    for (const CodePoints::Range& range : set.ranges()) {
      for (char32_t c = range.first; c <= std::min<char32_t>(range.last, 0x7F); ++c) {
        if (c < ' ' || c == '"' || c == '\\') {
          others.add(c);
        } else {
          plain.set(c);
        }
      }
      if (range.last >= 0x80) others.add(std::max<char32_t>(range.first, 0x80), range.last);
    }
  }
  if (plain.any()) alternatives.push_back({bytes(plain), use(rest)});
  if (!others.empty()) alternatives.push_back({use({Kind::unplain, set_of(others), id_of(rest)})});
}

std::uint32_t SchemaRules::string_of(const StringCase& string) {
  const auto [place, added] = string_ids_.try_emplace(string, static_cast<std::uint32_t>(strings_.size()));
  if (added) strings_.push_back(string);
  return place->second;
}

std::uint32_t SchemaRules::object_of(const Progress& progress) {
  const ObjectKey key{progress.what, progress.unseen, progress.others, progress.some, progress.next};
  const auto [place, added] = object_ids_.try_emplace(key, static_cast<std::uint32_t>(objects_.size()));
  if (!added) return place->second;
  if (progress.what->some.empty() && progress.what->properties.size() <= most_compared) {
    place->second = objects_left_.try_emplace(left_of(progress), place->second).first->second;
  }
  if (place->second == objects_.size()) objects_.push_back({progress, {}, {}, {}, {}});
  return place->second;
}

// All that decides on the rest of an object, which is the same after different beginnings of different cases.
std::vector<std::uint32_t> SchemaRules::left_of(const Progress& progress) {
  const ObjectCase& what = *progress.what;
  Trie& trie = trie_of(&what);
  spend(1 + what.properties.size() / 8);
  std::vector<std::uint32_t> left{progress.count() == 0, static_cast<std::uint32_t>(what.others.size()),
                                  static_cast<std::uint32_t>(progress.missing)};
  for (const std::size_t limit : {what.min, what.max.value_or(~std::size_t{0})}) {
    const std::uint64_t of_limit = limit == ~std::size_t{0} ? limit : limit - std::min(limit, progress.count());
    left.push_back(static_cast<std::uint32_t>(of_limit));
    left.push_back(static_cast<std::uint32_t>(of_limit >> 32));
  }
  for (const ObjectCase::Others& others : what.others) {
    left.push_back(others.names);
    left.push_back(others.shape);
  }
  for (std::uint32_t i = 0; i < what.properties.size(); ++i) {
    const std::uint32_t property = style_.closed ? i : trie.order[i];
    if (property < progress.next || !trie.sets.has(progress.unseen, trie.places[property])) continue;
    const ObjectCase::Property& its = what.properties[property];
    left.push_back(rest_of_name(trie, property, 0) << 1 | (its.required ? 1 : 0));
    left.push_back(its.shape);
  }
  return left;
}

SchemaRules::Progress SchemaRules::start_of(const ObjectCase* what) {
  const Trie& trie = trie_of(what);
  Progress start{what, trie.all, trie.all_spares};
  for (const ObjectCase::Property& property : what->properties) {
    if (!property.required) continue;
    ++start.missing;
    start.missing_bytes = std::min(start.missing_bytes + bytes_of(property), no_text);
  }
  return start;
}

SchemaRules::Progress SchemaRules::with_property(Progress progress, std::uint32_t property) {
  Trie& trie = trie_of(progress.what);
  const ObjectCase::Property& its = progress.what->properties[property];
  spend(1);
  progress.unseen = trie.sets.without(progress.unseen, trie.places[property]);
  ++progress.seen;
  if (style_.closed) progress.next = property + std::size_t{1};
  if (!its.required) {
    if (!trie.spare_places.empty()) progress.spares = trie.spares.without(progress.spares, trie.spare_places[property]);
    return progress;
  }
  --progress.missing;
  progress.missing_bytes -= bytes_of(its);
  return progress;
}

SchemaShapes::ObjectProgress SchemaRules::progress_of(const Progress& progress) {
  const Trie& trie = trie_of(progress.what);
  spend(1 + trie.places.size());
  SchemaShapes::ObjectProgress result{{}, progress.others, progress.some, progress.next};
  for (const std::uint32_t place : trie.places) result.seen.push_back(!trie.sets.has(progress.unseen, place));
  return result;
}

std::uint64_t SchemaRules::rest_of(const Progress& progress) {
  if (!is_plain(progress)) return shapes_.rest_of_object(*progress.what, progress_of(progress));
  const ObjectCase& what = *progress.what;
  // In order, what is missing comes before what may follow only if that is nothing.
  if (style_.closed && progress.missing > 0 && progress.next == what.properties.size()) return no_text;
  if (what.max && progress.count() + progress.missing > *what.max) return no_text;
  const std::uint64_t bytes = progress.missing_bytes + more_of(progress).all;
  // Each member has a comma, of which the first one of an object takes none.
  const bool first = progress.count() == 0 && bytes > 0;
  return std::min(bytes + (first ? 0 : 1), no_text);
}

std::uint64_t SchemaRules::rest_of(std::uint32_t object) {
  std::optional<std::uint64_t>& bytes = objects_[object].bytes;
  if (!bytes) bytes = rest_of(objects_[object].progress);
  return *bytes;
}

SchemaRules::More SchemaRules::more_of(const Progress& progress) {
  const std::size_t more = progress.more();
  if (more == 0) return {};
  const PlaceSets& spares = trie_of(progress.what).spares;
  const std::size_t named = std::min(more, spares.size(progress.spares));
  const auto sum = [&](std::size_t count) { return std::min(spares.sum_of_first(progress.spares, count), no_text); };
  const std::uint64_t all = sum(named);
  if (named == more) return {all, all - sum(more - 1)};
  const std::uint64_t each = shapes_.cheapest_others(*progress.what);
  if (each >= no_text) return {no_text, 0};
  return {std::min(all + each * std::min<std::uint64_t>(more - named, no_text / each), no_text), each};
}

bool SchemaRules::may_close(const Progress& progress) {
  const ObjectCase& what = *progress.what;
  return progress.some + 1 == 1U << what.some.size() && progress.missing == 0 && progress.count() >= what.min;
}

std::uint32_t SchemaRules::array_of(const ArrayCase* what, SchemaShapes::ArrayProgress progress) {
  const auto [place, added] = array_ids_.try_emplace({what, progress}, static_cast<std::uint32_t>(arrays_.size()));
  if (added) arrays_.push_back({what, std::move(progress)});
  return place->second;
}

SchemaRules::Trie& SchemaRules::trie_of(const ObjectCase* what) {
  const auto [place, added] = tries_.try_emplace(what);
  Trie& trie = place->second;
  if (!added) return trie;
  for (const ObjectCase::Property& property : what->properties) {
    trie.order.push_back(static_cast<std::uint32_t>(trie.names.size()));
    trie.names.push_back(code_points_of(property.name));
  }
  std::sort(trie.order.begin(), trie.order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return trie.names[a] < trie.names[b]; });
  trie.nodes.push_back({0, static_cast<std::uint32_t>(trie.order.size()), 0, 0, {}});
  for (std::uint32_t id = 0; id < trie.nodes.size(); ++id) add_children(trie, id);
  const std::size_t count = trie.order.size();
  trie.places.resize(count);
  trie.sets = trie.costs = PlaceSets(count);
  std::vector<PlaceSets::Least> costs(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    trie.places[trie.order[i]] = i;
    if (!style_.closed) costs[i] = cost_of(what->properties[trie.order[i]]);
  }
  trie.all = trie.sets.all(costs);
  if (style_.closed) trie.next.resize(count);
  if (!style_.closed && start_of(what).more() > 0) add_spares(what, trie);
  return trie;
}

void SchemaRules::add_spares(const ObjectCase* what, Trie& trie) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> by_bytes;
  for (std::uint32_t i = 0; i < what->properties.size(); ++i) {
    const ObjectCase::Property& property = what->properties[i];
    if (!property.required && bytes_of(property) < no_text) by_bytes.emplace_back(bytes_of(property), i);
  }
  std::sort(by_bytes.begin(), by_bytes.end());
  std::vector<PlaceSets::Least> costs;
  trie.spare_places.resize(what->properties.size());
  for (const auto& [bytes, property] : by_bytes) {
    trie.spare_places[property] = static_cast<std::uint32_t>(costs.size());
    costs.push_back({bytes, PlaceSets::none});
  }
  trie.spares = PlaceSets(costs.size());
  trie.all_spares = trie.spares.all(costs);
}

void SchemaRules::add_children(Trie& trie, std::uint32_t id) {
  const Trie::Node node = trie.nodes[id];
  spend(1 + node.end - node.begin);
  if (node.end - node.begin <= most_apart) return;
  for (std::uint32_t from = node.begin; from < node.end;) {
    const std::u32string& name = trie.names[trie.order[from]];
    if (name.size() == node.depth) {
      ++from;
      continue;
    }
    const char32_t next = name[node.depth];
    std::uint32_t to = from + 1;
    while (to < node.end && trie.names[trie.order[to]][node.depth] == next) ++to;
    trie.nodes[id].children.emplace_back(next, static_cast<std::uint32_t>(trie.nodes.size()));
    trie.nodes.push_back({from, to, node.depth + 1, node.bytes + json_bytes_of(next, next), {}});
    from = to;
  }
}

// "name":value,
std::uint64_t SchemaRules::bytes_of(const ObjectCase::Property& property) {
  return std::min(property.name_bytes + 4 + shapes_.bytes(property.shape), no_text);
}

// What a member adds to the bytes that are missing anyway.
PlaceSets::Least SchemaRules::cost_of(const ObjectCase::Property& property) {
  if (shapes_.bytes(property.shape) >= no_text) return {};
  if (property.required) return {0, 0};
  return {bytes_of(property), PlaceSets::none};
}

// The properties that may follow if they are in order: up to the first one that is missing.
PlaceSets::Set SchemaRules::next_in_order(const Progress& progress, Trie& trie) {
  const std::vector<ObjectCase::Property>& properties = progress.what->properties;
  if (progress.next == properties.size()) return 0;
  std::size_t last = progress.next;
  while (!trie.next[last] && !properties[last].required && last + 1 < properties.size()) ++last;
  for (std::size_t i = last + 1; i-- > progress.next;) {
    if (trie.next[i]) continue;
    const bool ends = properties[i].required || i + 1 == properties.size();
    spend(1);
    trie.next[i] = trie.costs.with(ends ? 0 : *trie.next[i + 1], trie.places[i], cost_of(properties[i]));
  }
  return *trie.next[progress.next];
}

// The least cost of the members of these places that may come next; PlaceSets::none if there is none.
std::uint64_t SchemaRules::least_of(const Progress& progress, std::uint32_t begin, std::uint32_t end) {
  Trie& trie = trie_of(progress.what);
  const std::size_t fewest = progress.count() + progress.missing;
  const std::size_t most = progress.what->max.value_or(fewest + 1);
  if (fewest > most) return PlaceSets::none;
  const PlaceSets::Least least = style_.closed ? trie.costs.least(next_in_order(progress, trie), begin, end)
                                               : trie.sets.least(progress.unseen, begin, end);
  if (fewest >= most) return least.needed;
  // A member that must follow anyway adds nothing, and another one takes the place of the longest of them.
  const auto [all, longest] = more_of(progress);
  return all >= no_text || least.any == PlaceSets::none ? PlaceSets::none
                                                        : all + least.any - std::min(longest, least.any);
}

bool SchemaRules::may_follow(Object& object, std::uint32_t property) {
  if (is_plain(object.progress)) {
    const std::uint32_t place = trie_of(object.progress.what).places[property];
    return least_of(object.progress, place, place + 1) < no_text;
  }
  work_out_members(object);
  return object.members[property] < no_text;
}

void SchemaRules::work_out_members(Object& object) {
  const ObjectCase& what = *object.progress.what;
  if (!object.members.empty() || what.properties.empty()) return;
  object.members = shapes_.rests_with_each(what, progress_of(object.progress));
  worked_out_.push_back(&object);
  if (worked_out_.size() <= most_worked_out) return;
  worked_out_.front()->members = std::vector<std::uint64_t>();
  worked_out_.pop_front();
}

GrammarRules::Facts SchemaRules::facts(std::uint32_t id) {
  const std::lock_guard lock(source_.mutex_);
  const Rule rule = rules_[id];
  static constexpr std::array<std::uint32_t, 19> ranks{0, 5, 6, 3, 4, 4, 4, 4, 4, 5, 6, 1, 1, 2, 3, 4, 4, 1, 1};
  Facts facts{false, ranks[static_cast<std::size_t>(rule.kind)], bytes_of(rule)};
  facts.nullable =
      rule.kind == Kind::space || rule.kind == Kind::indent || (rule.kind == Kind::number && number_ends(rule));
  return facts;
}

std::uint64_t SchemaRules::bytes_of(const Rule& rule) {
  switch (rule.kind) {
    case Kind::document:
      return shapes_.bytes(source_.root_);
    case Kind::space:
    case Kind::indent:
      return 0;
    case Kind::value:
      return shapes_.bytes(rule.a);
    case Kind::text:
    case Kind::name:
      return shapes_.automata().bytes(rule.a)[rule.b] + 1;
    case Kind::lengths:
      return std::uint64_t{rule.a} + 1;
    case Kind::bounded:
      return std::min(shapes_.bounded(strings_[rule.a]).bytes(rule.b, rule.c) + 1, no_text);
    case Kind::number:
      if (rule.c == 0) return shapes_.automata().bytes(rule.a)[rule.b];
      return places_[rule.c - 1]
          .first->characters_to_end(shapes_.automata()[rule.a], rule.b, places_[rule.c - 1].second)
          .value_or(no_text);
    case Kind::unplain:
      return std::min(shortest_character(sets_[rule.a]) + bytes_of(rules_[rule.b]), no_text);
    case Kind::character:
      return shortest_character(sets_[rule.a]);
    case Kind::object_start:
    case Kind::object_next:
      return rest_of(rule.a);
    case Kind::member:
      return shortest_member(rule.a);
    case Kind::named:
      return shortest_named(rule.a, rule.b);
    case Kind::fixed:
      return fixed_[rule.a].bytes + 1;
    case Kind::named_value:
      return shortest_value(rule.a, rule.b);
    case Kind::array_start:
    case Kind::array_next:
      break;
  }
  return shapes_.rest_of_array(*arrays_[rule.a].what, arrays_[rule.a].progress);
}

std::uint64_t SchemaRules::shortest_named(std::uint32_t object, std::uint32_t node) {
  Object& state = objects_[object];
  const Trie& trie = trie_of(state.progress.what);
  const Trie::Node& at = trie.nodes[node];
  spend(1);
  if (is_plain(state.progress)) {
    const std::uint64_t least = least_of(state.progress, at.begin, at.end);
    if (least >= no_text) return no_text;
    // Without the opening quote, and with the bracket instead of the comma.
    return std::min(state.progress.missing_bytes + least - 1 - at.bytes, no_text);
  }
  work_out_members(state);
  spend(at.end - at.begin);
  std::uint64_t shortest = no_text;
  for (std::uint32_t i = at.begin; i < at.end; ++i) {
    const std::uint32_t property = trie.order[i];
    if (state.members[property] >= no_text) continue;
    // The rest of the name, the quote and the colon.
    const std::uint64_t rest_of_name = state.progress.what->properties[property].name_bytes - at.bytes;
    const std::uint64_t bytes = state.members[property] + rest_of_name + 2;
    shortest = std::min(shortest, bytes);
  }
  return shortest;
}

// After the name's quote.
std::uint64_t SchemaRules::shortest_value(std::uint32_t object, std::uint32_t property) {
  Object& state = objects_[object];
  spend(1);
  if (!is_plain(state.progress)) {
    work_out_members(state);
    return std::min(state.members[property] + 1, no_text);
  }
  const std::uint32_t place = trie_of(state.progress.what).places[property];
  const std::uint64_t least = least_of(state.progress, place, place + 1);
  if (least >= no_text) return no_text;
  // Without the name and its quotes, and with the bracket instead of the comma.
  return std::min(state.progress.missing_bytes + least - 2 - state.progress.what->properties[property].name_bytes,
                  no_text);
}

std::uint64_t SchemaRules::shortest_member(std::uint32_t object) {
  if (objects_[object].member_bytes) return *objects_[object].member_bytes;
  std::uint64_t shortest = no_text;
  if (!objects_[object].progress.what->properties.empty()) shortest = shortest_named(object, 0) + 1;
  for (const OtherMember& other : other_members(object)) {
    const std::uint64_t name = shapes_.automata().bytes(other.names).front() + 3;  // two quotes and the colon
    shortest = std::min(shortest, name + shapes_.bytes(other.value) + rest_of(other.after));
  }
  return *(objects_[object].member_bytes = std::min(shortest, no_text));
}

const std::vector<SchemaRules::OtherMember>& SchemaRules::other_members(std::uint32_t object) {
  if (!objects_[object].others) {
    std::vector<OtherMember> others = make_other_members(object);
    objects_[object].others = std::move(others);
  }
  return *objects_[object].others;
}

// The members of an object that its trie does not have: of other names, and those that fulfil a condition on some
// property.
std::vector<SchemaRules::OtherMember> SchemaRules::make_other_members(std::uint32_t object) {
  std::vector<OtherMember> result;
  const Progress state = objects_[object].progress;
  const ObjectCase& what = *state.what;
  const auto add = [&](AutomatonId names, std::vector<NodeId> value, std::uint32_t chosen, Progress after) {
    for (std::size_t i = 0; i < what.some.size(); ++i) {
      if ((chosen >> i & 1) != 0) value.push_back(what.some[i].value);
    }
    after.some |= chosen;
    const ShapeId shape = shapes_.shape_of(std::move(value));
    if (shapes_.bytes(shape) >= no_text) return;
    const std::uint32_t next = object_of(after);
    if (rest_of(next) < no_text) result.push_back({names, shape, next});
  };
  if (what.max && state.count() >= *what.max) return result;
  const std::uint32_t open = ((1U << what.some.size()) - 1) & ~state.some;
  for (const ObjectCase::Others& others : what.others) {
    Progress after = state;
    // The count matters up to the limits only, and whether a comma follows.
    const std::size_t most = what.max ? *what.max : std::max(what.min, std::size_t{1});
    after.others = std::min(after.others + 1, most);
    if (style_.closed) after.next = what.properties.size();
    const std::uint32_t possible = others.some & open;
    for (std::uint32_t chosen = possible;; chosen = (chosen - 1) & possible) {
      add(others.names, others.value, chosen, after);
      if (chosen == 0) break;
    }
  }
  const Trie& trie = trie_of(&what);
  for (std::size_t i = state.next; open != 0 && i < what.properties.size(); ++i) {
    if (!trie.sets.has(state.unseen, trie.places[i])) continue;
    const std::u32string& name = trie.names[i];
    std::uint32_t possible = 0;
    for (std::size_t k = 0; k < what.some.size(); ++k) {
      if ((open >> k & 1) != 0 && shapes_.automata()[what.some[k].names].accepts(name)) possible |= 1U << k;
    }
    if (possible == 0) continue;
    const Progress after = with_property(state, static_cast<std::uint32_t>(i));
    const AutomatonId names = shapes_.name_of(what.properties[i]);
    for (std::uint32_t chosen = possible; chosen != 0; chosen = (chosen - 1) & possible) {
      add(names, what.properties[i].value, chosen, after);
    }
  }
  return result;
}

std::vector<GrammarRules::Sequence> SchemaRules::alternatives(std::uint32_t id) {
  const std::lock_guard lock(source_.mutex_);
  const Rule rule = rules_[id];
  switch (rule.kind) {
    case Kind::document:
      return {{space(Space::before), value(source_.root_), space(Space::before)}};
    case Kind::space:
      return spaces(static_cast<Space>(rule.a));
    case Kind::indent:
      if (rule.a == 0) return {{}};
      return {{}, {byte(' '), use({Kind::indent, rule.a - 1})}};
    case Kind::value:
      return values(rule.a);
    case Kind::text:
    case Kind::name:
      return rest_of_text(rule);
    case Kind::lengths:
      return rest_of_lengths(rule);
    case Kind::bounded:
      return rest_of_bounded(rule);
    case Kind::number:
      return rest_of_number(rule);
    case Kind::unplain:
      return {{use({Kind::character, rule.a, rules_[rule.b].kind == Kind::lengths && !style_.any_spelling}),
               this->rule(rule.b)}};
    case Kind::character: {
      std::vector<Sequence> result = spellings(sets_[rule.a]);
      for (Sequence& spelling : result) {
        for (TextRun& run : spelling.front().runs) run.most = rule.b != 0 ? 0 : TextRun::any;
      }
      return result;
    }
    case Kind::object_start:
    case Kind::object_next: {
      std::vector<Sequence> result;
      if (may_close(objects_[rule.a].progress)) {
        result.push_back(closing(rule.kind == Kind::object_start, byte('}', JsonEvent::object_closes)));
      }
      if (shortest_member(rule.a) >= no_text) return result;
      const Symbol member = use({Kind::member, rule.a});
      if (rule.kind == Kind::object_start) {
        result.push_back({space(Space::inside), member});
      } else {
        result.push_back({space(Space::before), byte(','), space(Space::after_comma), member});
      }
      return result;
    }
    case Kind::member:
      return members(rule.a);
    case Kind::named:
      return rest_of_named(rule);
    case Kind::fixed:
      return rest_of_fixed(rule);
    case Kind::named_value: {
      const std::uint32_t after = object_of(with_property(objects_[rule.a].progress, rule.b));
      std::vector<Sequence> result(1);
      add_value_of_member(result[0], objects_[rule.a].progress.what->properties[rule.b].shape, after);
      return result;
    }
    case Kind::array_start:
    case Kind::array_next:
      break;
  }
  return rest_of_array(rule);
}

std::vector<GrammarRules::Sequence> SchemaRules::spellings(const CodePoints& set) const {
  std::vector<Sequence> result;
  for (const std::vector<ByteSet>& spelling : json_character_spellings(set, style_.any_spelling)) {
    spend(4 * spelling.size());
    result.emplace_back();
    for (const ByteSet& byte_set : spelling) result.back().push_back(bytes(byte_set));
  }
  return result;
}

std::vector<GrammarRules::Sequence> SchemaRules::spaces(Space where) {
  std::vector<Sequence> result{{}};
  if (source_.whitespace_ == JsonWhitespace::none) return result;
  if (source_.whitespace_ == JsonWhitespace::free) {
    ByteSet set;
    for (const char c : std::string_view(" \t\n\r")) set.set(static_cast<unsigned char>(c));
    result.push_back({bytes(set), space(where)});
    return result;
  }
  if (where == Space::after_comma || where == Space::after_colon) result.push_back({byte(' ')});
  if (where == Space::inside || where == Space::after_comma) {
    result.push_back({byte('\n'), use({Kind::indent, longest_indent})});
  }
  return result;
}

// Between the brackets of nothing json.dumps writes no whitespace.
GrammarRules::Sequence SchemaRules::closing(bool empty, const Symbol& bracket) {
  if (empty && source_.whitespace_ == JsonWhitespace::fixed) return {bracket};
  return {space(Space::inside), bracket};
}

std::vector<GrammarRules::Sequence> SchemaRules::values(ShapeId shape) {
  const ShapeCases& cases = shapes_.cases(shape);
  std::vector<Sequence> result;
  if (cases.null) result.push_back(literal("null"));
  if (cases.true_too) result.push_back(literal("true"));
  if (cases.false_too) result.push_back(literal("false"));
  if (cases.number) result.push_back({use({Kind::number, *cases.number, 0})});
  for (const auto& [automaton, multiples] : cases.multiples) {
    result.push_back({use({Kind::number, automaton, 0, place_of(multiples, {})})});
  }
  if (cases.string) {
    const StringCase& string = *cases.string;
    const auto limit = static_cast<std::uint32_t>(std::min<std::size_t>(string.max.value_or(~0U), ~0U - 1) + 1);
    const auto min = static_cast<std::uint32_t>(std::min<std::size_t>(string.min, ~0U - 1));
    Rule rest{Kind::lengths, min, string.max ? limit : 0};
    if (string.automaton && string.max) {
      rest = {Kind::bounded, string_of(string)};
    } else if (string.automaton) {
      rest = start_of(Kind::text, *string.automaton);
    }
    result.push_back({byte('"'), use(rest)});
  }
  for (const ObjectCase* what : cases.objects) {
    const Progress start = start_of(what);
    if (rest_of(start) >= no_text) continue;
    result.push_back({byte('{', JsonEvent::object_opens), use({Kind::object_start, object_of(start)})});
  }
  for (const ArrayCase* what : cases.arrays) {
    SchemaShapes::ArrayProgress start = SchemaShapes::start_of(*what);
    if (shapes_.rest_of_array(*what, start) >= no_text) continue;
    result.push_back({byte('[', JsonEvent::array_opens), use({Kind::array_start, array_of(what, std::move(start))})});
  }
  return result;
}

std::vector<GrammarRules::Sequence> SchemaRules::rest_of_text(const Rule& rule) {
  const bool name = rule.kind == Kind::name;
  const Automaton& automaton = shapes_.automata()[rule.a];
  std::vector<Sequence> result;
  std::map<Automata::Place, CodePoints> by_target;
  for (auto [edge, end] = automaton.edges(rule.b); edge != end; ++edge)
    by_target[shapes_.automata().place_of(rule.a, edge->to)].add(edge->first, edge->last);
  for (const auto& [target, set] : by_target) {
    add_character(result, set, {rule.kind, target.automaton, target.state});
  }
  if (automaton.accepts_at(rule.b)) {
    result.push_back({byte('"', name ? JsonEvent::name_closes : JsonEvent::none)});
  }
  set_runs(result, rule);
  return result;
}

std::vector<GrammarRules::Sequence> SchemaRules::rest_of_lengths(const Rule& rule) {
  std::vector<Sequence> result;
  if (rule.a == 0) result.push_back({byte('"')});
  if (rule.b == 1) return result;
  const Rule rest{Kind::lengths, rule.a == 0 ? 0 : rule.a - 1, rule.b == 0 ? 0 : rule.b - 1};
  add_character(result, CodePoints::all(), rest);
  set_runs(result, rule);
  return result;
}

std::vector<GrammarRules::Sequence> SchemaRules::rest_of_bounded(const Rule& rule) {
  const StringCase string = strings_[rule.a];
  const Automaton& automaton = shapes_.automata()[*string.automaton];
  const BoundedStrings& lengths = shapes_.bounded(string);
  std::vector<Sequence> result;
  std::map<Automaton::State, CodePoints> by_target;
  for (auto [edge, end] = automaton.edges(rule.b); edge != end; ++edge) {
    if (lengths.bytes(edge->to, rule.c + 1) < no_text) by_target[edge->to].add(edge->first, edge->last);
  }
  for (const auto& [target, set] : by_target) {
    add_character(result, set, {Kind::bounded, rule.a, target, rule.c + 1});
  }
  if (automaton.accepts_at(rule.b) && rule.c >= string.min) result.push_back({byte('"')});
  set_runs(result, rule);
  return result;
}

GrammarRules::Rest SchemaRules::skip(std::uint32_t id, std::string_view bytes) {
  const std::lock_guard lock(source_.mutex_);
  Rule rule = rules_[id];
  std::size_t taken = 0;
  while (true) {
    const SpelledCharacter next = json_character(bytes.substr(taken), style_.any_spelling);
    if (next.bytes == 0 || !take(rule, next.character)) break;
    taken += next.bytes;
  }
  return {id_of(rule), taken};
}

// Turns the rest of a string into that after the character. Returns false if the character is not allowed, or if the
// rule is of something else.
bool SchemaRules::take(Rule& rule, char32_t character) {
  if (rule.kind == Kind::lengths) {
    if (rule.b == 1) return false;
    if (rule.a > 0) --rule.a;
    if (rule.b > 0) --rule.b;
    return true;
  }
  const bool bounded = rule.kind == Kind::bounded;
  if (!bounded && rule.kind != Kind::text && rule.kind != Kind::name) return false;
  const auto next = shapes_.automata()[bounded ? *strings_[rule.a].automaton : rule.a].next(rule.b, character);
  if (!next || (bounded && shapes_.bounded(strings_[rule.a]).bytes(*next, rule.c + 1) >= no_text)) return false;
  rule.b = *next;
  if (bounded) ++rule.c;
  return true;
}

std::uint32_t SchemaRules::place_of(const Multiples* multiples, const Multiples::Place& place) {
  const auto [known, added] =
      place_ids_.try_emplace({multiples, place}, static_cast<std::uint32_t>(places_.size() + 1));
  if (added) places_.emplace_back(multiples, place);
  return known->second;
}

bool SchemaRules::number_ends(const Rule& rule) {
  if (!shapes_.automata()[rule.a].accepts_at(rule.b)) return false;
  return rule.c == 0 || places_[rule.c - 1].first->ends_at(places_[rule.c - 1].second);
}

std::vector<GrammarRules::Sequence> SchemaRules::rest_of_multiple(const Rule& rule) {
  const auto [multiples, place] = places_[rule.c - 1];
  std::vector<Sequence> result;
  for (auto [edge, end] = shapes_.automata()[rule.a].edges(rule.b); edge != end; ++edge) {
    for (char32_t c = edge->first; c <= edge->last; ++c) {
      const auto after = multiples->after(place, c);
      if (!after) continue;
      const Rule rest{Kind::number, rule.a, edge->to, place_of(multiples, *after)};
      if (bytes_of(rest) < no_text) result.push_back({byte(static_cast<char>(c)), use(rest)});
    }
  }
  if (number_ends(rule)) result.emplace_back();
  return result;
}

std::vector<GrammarRules::Sequence> SchemaRules::rest_of_number(const Rule& rule) {
  if (rule.c != 0) return rest_of_multiple(rule);
  const Automaton& automaton = shapes_.automata()[rule.a];
  std::vector<Sequence> result;
  std::map<Automaton::State, ByteSet> by_target;
  for (auto [edge, end] = automaton.edges(rule.b); edge != end; ++edge) {
    for (char32_t c = edge->first; c <= edge->last; ++c) by_target[edge->to].set(c);
  }
  for (const auto& [target, set] : by_target) result.push_back({bytes(set), use({Kind::number, rule.a, target})});
  if (automaton.accepts_at(rule.b)) result.emplace_back();
  return result;
}

void SchemaRules::add_value_of_member(Sequence& sequence, ShapeId shape, std::uint32_t after) {
  for (const Symbol& symbol :
       {space(Space::before), byte(':'), space(Space::after_colon), value(shape), use({Kind::object_next, after})}) {
    sequence.push_back(symbol);
  }
}

std::vector<GrammarRules::Sequence> SchemaRules::members(std::uint32_t object) {
  std::vector<Sequence> result;
  const Symbol quote = byte('"', JsonEvent::name_opens);
  if (!objects_[object].progress.what->properties.empty() && shortest_named(object, 0) < no_text) {
    result.push_back({quote, use({Kind::named, object, 0})});
  }
  for (const OtherMember& other : other_members(object)) {
    Sequence sequence{quote, use(start_of(Kind::name, other.names))};
    add_value_of_member(sequence, other.value, other.after);
    result.push_back(std::move(sequence));
  }
  objects_[object].others.reset();
  return result;
}

std::vector<GrammarRules::Sequence> SchemaRules::rest_of_named(const Rule& rule) {
  std::vector<Sequence> result;
  Trie& trie = trie_of(objects_[rule.a].progress.what);
  const Trie::Node& node = trie.nodes[rule.b];
  const bool apart = node.end - node.begin <= most_apart;
  for (const auto& [next, child] : node.children) {
    if (shortest_named(rule.a, child) >= no_text) continue;
    add_character(result, CodePoints(next, next), {Kind::named, rule.a, child});
  }
  for (std::uint32_t i = node.begin; i < node.end; ++i) {
    const std::uint32_t property = trie.order[i];
    if (!apart && trie.names[property].size() != node.depth) break;  // the shortest name is the first
    if (!may_follow(objects_[rule.a], property)) continue;
    result.push_back(
        {use({Kind::fixed, rest_of_name(trie, property, node.depth)}), use({Kind::named_value, rule.a, property})});
  }
  return result;
}

std::uint32_t SchemaRules::rest_of_name(Trie& trie, std::uint32_t property, std::uint32_t depth) {
  trie.rests.resize(trie.names.size());
  if (trie.rests[property] != nullptr) return (*trie.rests[property])[depth];
  spend(1);
  const std::u32string& name = trie.names[property];
  std::vector<std::uint32_t>& rests = rests_[name];
  trie.rests[property] = &rests;
  if (!rests.empty()) return rests[depth];
  rests.resize(name.size() + 1);
  spend(rests.size());
  for (std::size_t i = name.size(); i-- > 0;) {
    const auto [place, added] =
        fixed_ids_.try_emplace({name[i], rests[i + 1]}, static_cast<std::uint32_t>(fixed_.size()));
    if (added) {
      const std::uint64_t bytes = fixed_[rests[i + 1]].bytes + json_bytes_of(name[i], name[i]);
      fixed_.push_back({name[i], rests[i + 1], bytes});
    }
    rests[i] = place->second;
  }
  return rests[depth];
}

std::vector<GrammarRules::Sequence> SchemaRules::rest_of_fixed(const Rule& rule) {
  if (rule.a == 0) return {{byte('"', JsonEvent::name_closes)}};
  const Fixed fixed = fixed_[rule.a];
  std::vector<Sequence> result;
  add_character(result, CodePoints(fixed.next, fixed.next), {Kind::fixed, fixed.after});
  return result;
}

std::vector<GrammarRules::Sequence> SchemaRules::rest_of_array(const Rule& rule) {
  const Array array = arrays_[rule.a];
  const bool start = rule.kind == Kind::array_start;
  Symbol comma = byte(',', JsonEvent::item_ends), bracket = byte(']', JsonEvent::array_closes);
  comma.distinct = bracket.distinct = array.what->unique && !start;
  std::vector<Sequence> result;
  if (shapes_.may_close(*array.what, array.progress)) result.push_back(closing(start, bracket));
  for (SchemaShapes::ItemChoice& choice : shapes_.next_items(*array.what, array.progress)) {
    if (shapes_.bytes(choice.shape) >= no_text) continue;
    if (shapes_.rest_of_array(*array.what, choice.after) >= no_text) continue;
    const Symbol item = value(choice.shape);
    const Symbol next = use({Kind::array_next, array_of(array.what, std::move(choice.after))});
    if (start) {
      result.push_back({space(Space::inside), item, next});
    } else {
      result.push_back({space(Space::before), comma, space(Space::after_comma), item, next});
    }
  }
  return result;
}

constexpr std::size_t max_schema_size = std::size_t{1} << 20;
constexpr std::size_t most_compile_steps = 20'000'000;
constexpr int max_file_depth = 100;

SchemaJson read_schema_file(const std::string& path) {
  const std::string text = read_text_or_pipe(path, max_schema_size);
  check_not_mistaken(text, text.size(), path);
  return parse_json<SchemaJson>(text, path, max_file_depth, "a JSON Schema", true);
}

}  // namespace

JsonSchemaGrammar compile_json_schema(const SchemaJson& schema, const std::string& source,
                                      const JsonSchemaOptions& options) {
  if (!schema.is_object() && !schema.is_boolean()) {
    throw SchemaError(fmt::format("{}: #: expected a schema: a JSON object", source));
  }
  const WorkLimit limit(most_compile_steps, "the schema");
  std::map<std::string, SchemaJson> references;
  for (const auto& [uri, path] : options.references) references.emplace(uri, read_schema_file(path));
  try {
    JsonSchemaGrammar result;
    auto nodes = read_schemas(schema, source, references);
    result.ignored = nodes->ignored();
    if (options.strict && !result.ignored.empty()) {
      throw SchemaError(fmt::format("{}: {} is not supported", source, result.ignored.front()));
    }
    result.grammar.rules_source =
        std::make_shared<SchemaRulesSource>(std::move(nodes), SchemaStyle{options.closed, options.any_spelling},
                                            options.any_spelling ? JsonWhitespace::free : options.whitespace);
    result.steps = limit.steps();
    return result;
  } catch (const SchemaError&) {
    throw;
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", source, error.what()));
  }
}

std::optional<std::string> plain_number(std::string_view number) {
  try {
    parse_json<SchemaJson>(number, "number", 0, "a number");
  } catch (const Error&) {
    return std::nullopt;
  }
  const auto value = decimal_of(number);
  return value ? plain_text(*value) : std::nullopt;
}

JsonSchemaGrammar compile_json_schema_file(const std::string& path, const JsonSchemaOptions& options) {
  return compile_json_schema(read_schema_file(path), path, options);
}

}  // namespace minimind
