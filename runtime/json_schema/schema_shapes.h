#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/json_schema/schema_nodes.h"

namespace minimind {

// Values of a set of schemas that must all hold, as cases without conditions that contradict or overlap in ways that
// only a whole value would show: what may follow in a text can be read off a case.

using ShapeId = std::uint32_t;
constexpr std::uint64_t no_text = std::uint64_t{1} << 40;  // at least as long: there is no such text

struct StringCase {
  std::optional<AutomatonId> automaton;  // if unset, the lengths alone say what is valid
  std::size_t min = 0;
  std::optional<std::size_t> max;

  auto operator<=>(const StringCase&) const = default;
};

// The strings of an automaton with `min` to `max` characters, if the automaton of both conditions would be too large.
class BoundedStrings {
 public:
  // Throws Error if there are too many states and lengths.
  BoundedStrings(const Automaton& automaton, std::size_t min, std::size_t max);

  // The fewest bytes that complete a string of `length` characters so far; no_text if nothing does.
  std::uint64_t bytes(Automaton::State state, std::size_t length) const {
    const std::uint32_t bytes = length > max_ ? none : bytes_[row_of(length) * states_ + state];
    return bytes == none ? no_text : bytes;
  }

  // Up to this length every state leads to an end, after at most most_bytes() bytes.
  std::size_t safe_length() const { return safe_length_; }
  std::uint64_t most_bytes() const { return most_bytes_; }

 private:
  void find_safe_length();
  // A shortest end has fewer characters than there are states: lengths that leave room for more are alike.
  std::size_t row_of(std::size_t length) const {
    return length < min_ ? length : std::max(min_, length - std::min(length, alike_));
  }

  static constexpr std::uint32_t none = ~0u;
  std::size_t states_, min_, max_;
  std::size_t alike_;  // lengths after min_, that have no rows
  std::size_t safe_length_ = 0;
  std::uint64_t most_bytes_ = 0;
  std::vector<std::uint32_t> bytes_;  // [rows, states]
};

// An object has properties of these names, and others by the first class that has the name.
struct ObjectCase {
  struct Property {
    std::string name;
    std::vector<NodeId> value;
    ShapeId shape = 0;
    bool required = false;
    std::uint64_t name_bytes = 0;  // in a text, without its quotes
  };
  struct Others {
    AutomatonId names;
    std::vector<NodeId> value;
    ShapeId shape = 0;
    std::uint32_t some = 0;  // a bit for each of `some` of the case whose names these are
  };

  std::vector<Property> properties;  // in order of appearance
  std::vector<Others> others;
  std::vector<SchemaNode::SomeProperty> some;
  std::size_t min = 0;
  std::optional<std::size_t> max;
};

struct ArrayCase {
  std::vector<std::vector<NodeId>> prefix;
  std::vector<NodeId> rest;
  std::vector<SchemaNode::Contains> contains;
  std::size_t min = 0;
  std::optional<std::size_t> max;
  bool unique = false;
  // If the items are distinct and only few values are possible: a node for each. Worked out when it is first needed.
  mutable std::optional<std::vector<NodeId>> values;
};

struct ShapeCases {
  bool null = false, true_too = false, false_too = false;
  std::optional<StringCase> string;
  std::optional<AutomatonId> number;
  struct OfMultiples {
    AutomatonId automaton;
    const Multiples* multiples;  // that the numbers must be, too
  };
  std::vector<OfMultiples> multiples;
  std::vector<const ObjectCase*> objects;
  std::vector<const ArrayCase*> arrays;
};

// How far a text may use what a schema leaves open.
struct SchemaStyle {
  // Properties that no keyword names are allowed only where the schema has a keyword for them; properties come in the
  // schema's order; whole numbers have digits only.
  bool closed = false;
  // Any whitespace between the parts of a text and any escapes; otherwise JsonSchemaOptions::whitespace.
  bool any_spelling = false;
};

class SchemaShapes {
 public:
  SchemaShapes(SchemaNodes& nodes, const SchemaStyle& style) : nodes_(nodes), style_(style) {}

  ShapeId shape_of(std::vector<NodeId> nodes);
  const ShapeCases& cases(ShapeId shape);
  // The bytes of the shortest text of a value; no_text if there is none.
  std::uint64_t bytes(ShapeId shape);

  // Works out the cases of a value and of all that it is made of.
  void explore(ShapeId root);
  // Works out all that texts of the value will need, as far as it is not too complex.
  void prepare(ShapeId root);
  // From now on, a value whose conditions are too complex has no text, so that it is omitted, and a text that was
  // started can always be ended. Otherwise the functions here throw Error for it.
  void leave_out_what_is_too_complex() { leaves_out_ = true; }

  const SchemaStyle& style() const { return style_; }
  SchemaNodes& nodes() { return nodes_; }
  Automata& automata() { return nodes_.automata(); }

  // The nodes of an item of an array.
  const std::vector<NodeId>& item(const ArrayCase& array, std::size_t index) const {
    return index < array.prefix.size() ? array.prefix[index] : array.rest;
  }
  // The shortest string, with its quotes.
  std::uint64_t string_bytes(const StringCase& string);
  // Of a case with an automaton and a limit.
  const BoundedStrings& bounded(const StringCase& string);

  // A state of an object or an array being written, from which the shortest rest is worked out.
  struct ObjectProgress {
    std::vector<bool> seen;  // [properties]
    std::size_t others = 0;
    std::uint32_t some = 0;  // a bit for each that is fulfilled
    std::size_t next = 0;    // the first property that may follow, if they are in order

    std::size_t count() const;
  };
  struct ArrayProgress {
    std::size_t count = 0;
    std::vector<std::uint32_t> contains;  // [contains], items that count
    std::vector<bool> used;               // [values]
    auto operator<=>(const ArrayProgress&) const = default;
  };
  struct ItemChoice {
    ShapeId shape;
    ArrayProgress after;
  };

  // Bytes up to the closing bracket, included; no_text if nothing leads there.
  std::uint64_t rest_of_object(const ObjectCase& object, const ObjectProgress& progress);
  std::uint64_t rest_of_array(const ArrayCase& array, const ArrayProgress& progress);
  // "name":value, of the shortest member that no property names.
  std::uint64_t cheapest_others(const ObjectCase& object);
  // The automaton of its name alone.
  AutomatonId name_of(const ObjectCase::Property& property);
  std::vector<std::uint64_t> rests_with_each(const ObjectCase& object, const ObjectProgress& progress);
  std::vector<std::uint64_t> rests_in_order(const ObjectCase& object, const ObjectProgress& progress);
  static ArrayProgress start_of(const ArrayCase& array) {
    ArrayProgress start;
    start.contains.resize(array.contains.size());
    return start;
  }
  bool may_close(const ArrayCase& array, const ArrayProgress& progress) const;
  std::vector<ItemChoice> next_items(const ArrayCase& array, const ArrayProgress& progress);

 private:
  const std::vector<NodeId>& few_values(const ArrayCase& array);
  std::optional<std::uint64_t> known_rest(const ArrayCase& array, const ArrayProgress& progress);
  std::uint64_t rest_of_values(const ArrayCase& array, const ArrayProgress& progress);

  struct Branch {
    std::vector<NodeId> nodes;
    std::set<NodeId> in;
    std::vector<std::vector<NodeId>> choices;        // one of each must hold
    std::vector<std::vector<NodeId>> one_ofs;        // exactly one of each
    std::set<std::string_view> required, forbidden;  // of the nodes
    bool decides_all = false;                        // for each alternative of anyOf, whether it holds

    std::size_t weight() const;  // steps of copying it
  };
  // What the schemas of a branch evaluate that belong to one of them.
  struct Evaluated {
    std::set<NodeId> nodes;
    std::set<std::string_view> properties;
    std::set<AutomatonId> patterns;
    std::size_t items = 0;
    bool for_items = false;  // they are requested
    bool all_properties = false, all_items = false;
  };

  // The conditions of branches without alternatives, each once.
  struct Branches {
    std::vector<std::vector<NodeId>> all;
    std::set<std::vector<NodeId>> known;
  };
  void expand(JsonType type, Branch branch, Branches& result);
  bool add(JsonType type, Branch& branch, NodeId id);
  bool add_object(Branch& branch, const SchemaNode& node);
  bool add_choices(JsonType type, Branch& branch, const SchemaNode& node);
  void decide_all(Branch& branch);
  void decide_parts(Branch& branch, const SchemaNode& node);
  void add_unevaluated(std::vector<NodeId>& branch);
  void evaluate(const std::set<NodeId>& branch, NodeId id, Evaluated& evaluated);
  NodeId rest_of(const Evaluated& evaluated, const SchemaNode& node);
  bool settle(JsonType type, Branch& branch);
  bool settle_values(Branch& branch);
  std::vector<NodeId> exclusive(const std::vector<NodeId>& parts, const Branch& branch);
  bool certainly_empty(std::vector<NodeId> nodes);
  class Depth;
  void charge(NodeId id);
  template <class Visit>
  void visit_parts(ShapeId root, Visit visit);
  std::vector<ShapeId> values_of_some(const ObjectCase& object);

  ShapeCases work_out(ShapeId shape);
  std::optional<StringCase> string_case(const std::vector<std::vector<NodeId>>& branches);
  StringCase string_of(const std::vector<NodeId>& branch);
  AutomatonId automaton_of(const StringCase& string);
  bool is_empty(const StringCase& string);
  void number_case(const std::vector<std::vector<NodeId>>& branches, ShapeCases& cases);
  std::pair<std::optional<Decimal>, bool> divisor_of(const std::vector<NodeId>& branch);
  ShapeCases::OfMultiples number_of(const std::vector<NodeId>& branch, bool automata_do);
  void object_case(const std::vector<NodeId>& branch, ShapeCases& cases);
  void add_others(const std::vector<NodeId>& branch, AutomatonId names, ObjectCase& object);
  std::vector<std::vector<NodeId>> value_nodes(const std::vector<NodeId>& branch, const std::vector<std::string>& names,
                                               const std::vector<std::u32string>& texts);
  AutomatonId strings_of(std::vector<NodeId> nodes);
  std::optional<AutomatonId> property_names(const std::vector<NodeId>& branch);
  void array_case(const std::vector<NodeId>& branch, ShapeCases& cases);

  std::uint64_t known_bytes(ShapeId shape);
  std::uint64_t solve(ShapeId shape);
  std::uint64_t compute_bytes(ShapeId shape);
  std::uint64_t bytes_of_cases(ShapeId shape);
  std::uint64_t member_bytes(std::uint64_t name_bytes, ShapeId value);
  std::vector<std::uint64_t> members_of_some(const ObjectCase& object, const ObjectProgress& progress);
  std::uint64_t more_bytes(const ObjectCase& object, const ObjectProgress& progress, std::size_t count);

  SchemaNodes& nodes_;
  SchemaStyle style_;
  bool leaves_out_ = false;
  std::unordered_map<std::vector<NodeId>, ShapeId, HashOfNodes> ids_;
  std::deque<std::vector<NodeId>> shapes_;
  std::deque<std::optional<ShapeCases>> cases_;
  std::deque<std::optional<std::uint64_t>> bytes_;
  std::unordered_map<ShapeId, std::size_t> in_progress_;  // of cases(), with how many others are
  // The bytes of values as if those in progress took none, at least as deep as that at `level`: they are valid until
  // its end. What they are needed for are many questions whether two alternatives exclude each other.
  struct Guess {
    std::uint64_t bytes;
    std::size_t level;
  };
  std::unordered_map<ShapeId, Guess> guesses_;
  std::vector<std::vector<ShapeId>> guessed_at_;  // by level
  std::map<StringCase, BoundedStrings> bounded_;
  std::map<std::pair<std::string, int>, Multiples> multiples_;  // by digits and exponent
  std::deque<ObjectCase> objects_;
  std::deque<ArrayCase> arrays_;
  using ArrayRests = std::map<std::pair<const ArrayCase*, ArrayProgress>, std::uint64_t>;
  ArrayRests array_rests_, guessed_rests_;  // the latter while a value's shortest text is being worked out

  // The shapes whose shortest texts depend on each other, and what is known of them so far.
  struct Solution {
    struct Part {
      ShapeId shape;
      std::uint64_t bytes;
      std::set<std::size_t> users;  // parts that it is a part of
    };
    std::vector<Part> parts;  // in the order in which they were asked for
    std::unordered_map<ShapeId, std::size_t> places;
    std::set<std::size_t> pending;
    std::optional<std::size_t> asking;   // the part that is being worked out
    std::optional<std::size_t> guessed;  // the level of the innermost of those in progress that it takes for empty
  };
  Solution* solution_ = nullptr;
  std::size_t nesting_ = 0;
  std::size_t depth_ = 0;  // of calls within each other
  bool prepares_ = false;
  std::size_t branches_ = 0, all_branches_ = 0;  // of the value that is being worked out, and of all
};

}  // namespace minimind
