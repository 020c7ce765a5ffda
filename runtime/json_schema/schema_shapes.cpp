#include "runtime/json_schema/schema_shapes.h"

#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <queue>

#include "runtime/grammar/work.h"
#include "runtime/text/utf8.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

constexpr std::size_t most_branches = 1'000;  // of one value
constexpr std::size_t most_branches_in_all = 300'000;
constexpr std::size_t most_nesting = 40;  // of questions whether two schemas exclude each other
constexpr std::size_t most_shapes = 200'000;
constexpr std::size_t most_product_states = 4096;  // of a pattern and the lengths next to it
constexpr std::size_t most_bounded = 16'000'000;   // states and lengths, where the product would be larger
// Of alternatives within alternatives, and of references to references. Each takes up to a kilobyte of the stack (on
// ARM), and threads may have as little as 2 MB.
constexpr std::size_t most_depth = 1'000;
constexpr std::size_t most_value_steps = 4'000'000;     // of work on a value before the first text
constexpr std::size_t most_late_value_steps = 500'000;  // likewise, when a text needs it
constexpr std::size_t question_steps = 100;             // of the question whether two schemas exclude each other
constexpr std::size_t ways_in_a_step = 8;               // of work, of those that are compared for a string's length
constexpr std::size_t properties_in_a_step = 8;         // likewise, of those that are passed over
constexpr std::size_t most_conditions = 12;             // on some property of an object
constexpr std::size_t most_known_names = 64;            // of a pattern
constexpr std::size_t most_values = 64;                 // that an array of distinct items distinguishes beforehand
constexpr std::size_t most_counted_items = 4096;        // of an array with `contains`

std::vector<NodeId> sorted(std::vector<NodeId> nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

std::uint64_t added(std::uint64_t a, std::uint64_t b) {
  return std::min(a + b, no_text);
}

// Calls `undo` at the end of a scope, which an Error may be.
template <class Undo>
struct AtEnd {
  Undo undo;
  ~AtEnd() { undo(); }
};
template <class Undo>
AtEnd(Undo) -> AtEnd<Undo>;

std::uint64_t text_bytes(std::u32string_view text) {
  std::uint64_t bytes = 0;
  for (const char32_t c : text) bytes += json_bytes_of(c, c);
  return bytes;
}

}  // namespace

ShapeId SchemaShapes::shape_of(std::vector<NodeId> nodes) {
  std::erase(nodes, nodes_.always());
  spend(1 + nodes.size());
  nodes = sorted(std::move(nodes));
  const auto known = ids_.find(nodes);
  if (known != ids_.end()) return known->second;
  if (shapes_.size() == most_shapes) nodes_.fail(nodes.front(), "the schema is too complex; simplify it");
  const auto id = static_cast<ShapeId>(shapes_.size());
  shapes_.push_back(nodes);
  cases_.emplace_back();
  bytes_.emplace_back();
  ids_.emplace(std::move(nodes), id);
  return id;
}

const ShapeCases& SchemaShapes::cases(ShapeId shape) {
  if (!cases_[shape]) {
    const std::size_t level = guessed_at_.size();
    in_progress_.emplace(shape, level);
    guessed_at_.emplace_back();
    const AtEnd end{[&, outer_branches = std::exchange(branches_, 0)] {
      in_progress_.erase(shape);
      for (const ShapeId guessed : guessed_at_[level]) guesses_.erase(guessed);
      guessed_at_.resize(level);
      branches_ = outer_branches;
    }};
    cases_[shape] = work_out(shape);
  }
  return *cases_[shape];
}

template <class Visit>
void SchemaShapes::visit_parts(ShapeId root, Visit visit) {
  std::vector<ShapeId> pending{root};
  std::set<ShapeId> known{root};
  const auto add = [&](ShapeId shape) {
    if (known.insert(shape).second) pending.push_back(shape);
  };
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const ShapeId shape = pending[i];
    if (!visit(shape)) continue;
    for (const ObjectCase* object : cases(shape).objects) {
      for (const ObjectCase::Property& property : object->properties) add(property.shape);
      for (const ObjectCase::Others& others : object->others) add(others.shape);
      if (!prepares_) continue;
      for (const ShapeId value : values_of_some(*object)) add(value);
    }
    for (const ArrayCase* array : cases(shape).arrays) {
      for (const std::vector<NodeId>& item : array->prefix) add(shape_of(item));
      add(shape_of(array->rest));
      if (!prepares_ || array->contains.empty()) continue;
      for (const ItemChoice& choice : next_items(*array, start_of(*array))) add(choice.shape);
    }
  }
}

AutomatonId SchemaShapes::name_of(const ObjectCase::Property& property) {
  return automata().cached("name " + property.name,
                           [&] { return Automaton::of_texts({code_points_of(property.name)}); });
}

// The values of members that fulfil one of the conditions on some property.
std::vector<ShapeId> SchemaShapes::values_of_some(const ObjectCase& object) {
  std::vector<ShapeId> result;
  const auto add = [&](std::vector<NodeId> value, const SchemaNode::SomeProperty& some) {
    value.push_back(some.value);
    result.push_back(shape_of(std::move(value)));
  };
  for (std::size_t i = 0; i < object.some.size(); ++i) {
    for (const ObjectCase::Others& others : object.others) {
      if ((others.some >> i & 1) != 0) add(others.value, object.some[i]);
    }
    for (const ObjectCase::Property& property : object.properties) {
      if (!automata()[object.some[i].names].accepts(code_points_of(property.name))) continue;
      automata().prepare(name_of(property));
      add(property.value, object.some[i]);
    }
  }
  return result;
}

void SchemaShapes::explore(ShapeId root) {
  visit_parts(root, [&](ShapeId shape) {
    cases(shape);
    return true;
  });
}

void SchemaShapes::prepare(ShapeId root) {
  prepares_ = true;
  const AtEnd end{[&] { prepares_ = false; }};
  visit_parts(root, [&](ShapeId shape) {
    // The rest of what a schema may have is left for what texts need.
    if (shapes_.size() > most_shapes / 2 || all_branches_ > most_branches_in_all / 2) return false;
    if (automata().states() > Automata::most_states / 2) return false;
    try {
      bytes(shape);
      const ShapeCases& all = cases(shape);
      if (all.string && all.string->automaton) automata().prepare(*all.string->automaton);
      for (const ObjectCase* object : all.objects) {
        for (const ObjectCase::Others& others : object->others) automata().prepare(others.names);
      }
      for (const ArrayCase* array : all.arrays) rest_of_array(*array, start_of(*array));
      return true;
    } catch (const TooMuchWork&) {
      throw;
    } catch (const Error&) {
      return false;  // to be reported where a text has such a value
    }
  });
}

// Branches: the conditions of one type, without alternatives.

void SchemaShapes::charge(NodeId id) {
  if (++branches_ > most_branches || ++all_branches_ > most_branches_in_all) {
    nodes_.fail(id, "the alternatives of the schema have too many combinations; simplify anyOf, oneOf, not or if");
  }
}

// One call within others, of which the stack has room for so many.
class SchemaShapes::Depth {
 public:
  Depth(SchemaShapes& shapes, NodeId id) : shapes_(shapes) {
    if (shapes.depth_ == most_depth) {
      shapes.nodes_.fail(id,
                         fmt::format("alternatives or references are nested over {} deep; nest them less", most_depth));
    }
    ++shapes_.depth_;
  }
  ~Depth() { --shapes_.depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  SchemaShapes& shapes_;
};

std::size_t SchemaShapes::Branch::weight() const {
  std::size_t steps = nodes.size() + required.size() + forbidden.size();
  for (const auto* parts : {&choices, &one_ofs}) {
    for (const std::vector<NodeId>& choice : *parts) steps += 1 + choice.size();
  }
  return steps;
}

void SchemaShapes::expand(JsonType type, Branch branch, Branches& result) {
  const Depth depth(*this, branch.nodes.empty() ? nodes_.root() : branch.nodes.front());
  do {
    if (!settle(type, branch)) return;
    if (branch.one_ofs.empty()) break;
    const std::vector<NodeId> parts = std::move(branch.one_ofs.back());
    branch.one_ofs.pop_back();
    branch.choices.push_back(exclusive(parts, branch));
  } while (true);
  if (type == JsonType::object && !branch.choices.empty() && !settle_values(branch)) return;
  if (branch.choices.empty()) {
    if (result.known.insert(branch.nodes).second) result.all.push_back(branch.nodes);
    return;
  }
  const auto fewest = std::min_element(branch.choices.begin(), branch.choices.end(),
                                       [](const auto& a, const auto& b) { return a.size() < b.size(); });
  const std::vector<NodeId> choice = std::move(*fewest);
  branch.choices.erase(fewest);
  for (const NodeId alternative : choice) {
    charge(alternative);
    spend(branch.weight());
    Branch with = branch;
    if (add(type, with, alternative)) expand(type, std::move(with), result);
  }
}

// Takes choices that are no longer ones: those that hold already, and those with one alternative.
bool SchemaShapes::settle(JsonType type, Branch& branch) {
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < branch.choices.size(); ++i) {
      std::vector<NodeId>& choice = branch.choices[i];
      spend(1 + choice.size());
      std::erase_if(choice, [&](NodeId id) { return (nodes_[id].types & bit_of(type)) == 0; });
      const bool holds = std::any_of(choice.begin(), choice.end(),
                                     [&](NodeId id) { return id == nodes_.always() || branch.in.contains(id); });
      if (!holds && choice.empty()) return false;
      if (!holds && choice.size() > 1) continue;
      const NodeId only = holds ? nodes_.always() : choice.front();
      branch.choices.erase(branch.choices.begin() + static_cast<std::ptrdiff_t>(i));
      if (!add(type, branch, only)) return false;
      changed = true;
      break;
    }
  }
  return true;
}

// Adds a schema and all that it says at once. Returns false if nothing can be valid any more.
bool SchemaShapes::add(JsonType type, Branch& branch, NodeId id) {
  if (id == nodes_.always() || !branch.in.insert(id).second) return true;
  const Depth depth(*this, id);
  const SchemaNode& node = nodes_[id];
  if ((node.types & bit_of(type)) == 0) return false;
  spend(1 + node.weight());
  branch.nodes.push_back(id);
  if (node.unevaluated || node.unevaluated_items) decide_all(branch);
  if (type == JsonType::object && !add_object(branch, node)) return false;
  for (const NodeId part : node.all_of) {
    if (!add(type, branch, part)) return false;
  }
  return add_choices(type, branch, node);
}

bool SchemaShapes::add_object(Branch& branch, const SchemaNode& node) {
  spend(branch.required.size());
  branch.required.insert(node.required.begin(), node.required.end());
  for (const auto& [name, value] : node.properties) {
    if (value == nodes_.never()) branch.forbidden.insert(name);
  }
  return std::none_of(branch.required.begin(), branch.required.end(),
                      [&](std::string_view name) { return branch.forbidden.contains(name); });
}

bool SchemaShapes::add_choices(JsonType type, Branch& branch, const SchemaNode& node) {
  for (const std::vector<NodeId>& parts : node.any_of) branch.choices.push_back(parts);
  if (branch.decides_all) decide_parts(branch, node);
  branch.one_ofs.insert(branch.one_ofs.end(), node.one_of.begin(), node.one_of.end());
  for (const NodeId part : node.none_of) {
    if (branch.in.contains(part)) return false;
    branch.choices.push_back(nodes_.negation(part));
    spend(branch.choices.back().size());
  }
  for (const SchemaNode::If& part : node.ifs) {
    std::vector<NodeId> holds{part.condition}, fails{nodes_.inverse(part.condition)};
    if (part.then) holds.push_back(*part.then);
    if (part.otherwise) fails.push_back(*part.otherwise);
    branch.choices.push_back({nodes_.all_of(holds), nodes_.all_of(fails)});
  }
  if (type != JsonType::object) return true;
  const auto if_present = [&](const std::string& name, std::vector<NodeId> then) {
    then.push_back(nodes_.requiring(name));
    branch.choices.push_back({nodes_.forbidding(name), nodes_.all_of(std::move(then))});
  };
  for (const auto& [name, needed] : node.dependent_required) {
    std::vector<NodeId> then;
    for (const std::string& other : needed) then.push_back(nodes_.requiring(other));
    if_present(name, std::move(then));
  }
  for (const auto& [name, schema] : node.dependent) if_present(name, {schema});
  return true;
}

// What is evaluated depends on all alternatives that hold, not on one of them.
void SchemaShapes::decide_all(Branch& branch) {
  if (std::exchange(branch.decides_all, true)) return;
  for (const NodeId id : branch.nodes) {
    if (id != branch.nodes.back()) decide_parts(branch, nodes_[id]);
  }
}

void SchemaShapes::decide_parts(Branch& branch, const SchemaNode& node) {
  for (const std::vector<NodeId>& parts : node.any_of) {
    for (const NodeId part : parts) {
      if (nodes_[part].evaluates) branch.choices.push_back({part, nodes_.inverse(part)});
    }
  }
}

// Says of each schema with unevaluatedProperties or unevaluatedItems what these keywords mean in a branch, as a schema
// with additionalProperties or items.
void SchemaShapes::add_unevaluated(std::vector<NodeId>& branch) {
  const std::vector<NodeId> nodes = branch;
  const std::set<NodeId> all(nodes.begin(), nodes.end());
  for (const NodeId id : nodes) {
    if (!nodes_[id].unevaluated && !nodes_[id].unevaluated_items) continue;
    Evaluated evaluated;
    evaluated.for_items = nodes_[id].unevaluated_items.has_value();
    evaluate(all, id, evaluated);
    branch.push_back(rest_of(evaluated, nodes_[id]));
  }
}

// Adds what the schema and those of the branch that it applies to the same value evaluate.
void SchemaShapes::evaluate(const std::set<NodeId>& branch, NodeId id, Evaluated& evaluated) {
  const Depth depth(*this, id);
  const bool first = evaluated.nodes.empty();
  const SchemaNode& node = nodes_[id];
  spend(1 + node.weight());
  if (!branch.contains(id) || !node.evaluates || !evaluated.nodes.insert(id).second) return;
  if (!node.contains.empty() && evaluated.for_items) {
    nodes_.fail(id, "contains is not supported together with unevaluatedItems");
  }
  for (const auto& [name, value] : node.properties) evaluated.properties.insert(name);
  for (const auto& [names, value] : node.patterns) evaluated.patterns.insert(names);
  evaluated.items = std::max(evaluated.items, node.prefix.size());
  evaluated.all_properties = evaluated.all_properties || node.additional || (node.unevaluated && !first);
  evaluated.all_items = evaluated.all_items || node.items || (node.unevaluated_items && !first);
  const auto all = [&](const std::vector<NodeId>& parts) {
    for (const NodeId part : parts) evaluate(branch, part, evaluated);
  };
  all(node.all_of);
  for (const std::vector<NodeId>& parts : node.any_of) all(parts);
  for (const std::vector<NodeId>& parts : node.one_of) all(parts);
  for (const SchemaNode::If& part : node.ifs) {
    const bool condition = branch.contains(part.condition);
    if (condition) evaluate(branch, part.condition, evaluated);
    const std::optional<NodeId>& then = condition ? part.then : part.otherwise;
    if (then) evaluate(branch, *then, evaluated);
  }
  for (const auto& [name, schema] : node.dependent) evaluate(branch, schema, evaluated);
}

NodeId SchemaShapes::rest_of(const Evaluated& evaluated, const SchemaNode& node) {
  SchemaNode rest;
  rest.pointer = node.pointer;
  if (node.unevaluated && !evaluated.all_properties) {
    for (const std::string_view name : evaluated.properties) rest.properties.emplace_back(name, nodes_.always());
    for (const AutomatonId names : evaluated.patterns) rest.patterns.emplace_back(names, nodes_.always());
    rest.additional = node.unevaluated;
  }
  if (node.unevaluated_items && !evaluated.all_items) {
    rest.prefix.assign(evaluated.items, nodes_.always());
    rest.items = node.unevaluated_items;
  }
  return nodes_.add(std::move(rest));
}

// The alternatives of oneOf that are possible, each with the opposite of those that it does not exclude by itself.
std::vector<NodeId> SchemaShapes::exclusive(const std::vector<NodeId>& parts, const Branch& branch) {
  std::vector<NodeId> context;
  for (const NodeId id : branch.nodes) context.push_back(nodes_.without_logic(id));
  const auto empty = [&](std::initializer_list<NodeId> with) {
    spend(1 + context.size());
    std::vector<NodeId> nodes = context;
    nodes.insert(nodes.end(), with);
    return certainly_empty(std::move(nodes));
  };
  std::vector<NodeId> possible, result;
  for (const NodeId part : parts) {
    if (!empty({part})) possible.push_back(part);
  }
  if (possible.size() * possible.size() / 2 > most_shapes) {
    nodes_.fail(parts.front(), fmt::format("oneOf has {} alternatives that may hold, expected at most {}",
                                           possible.size(), static_cast<std::size_t>(std::sqrt(2 * most_shapes))));
  }
  for (std::size_t i = 0; i < possible.size(); ++i) {
    std::vector<NodeId> all{possible[i]};
    for (std::size_t j = 0; j < possible.size(); ++j) {
      if (i != j && !empty({possible[i], possible[j]})) all.push_back(nodes_.inverse(possible[j]));
    }
    result.push_back(nodes_.all_of(std::move(all)));
  }
  return result;
}

// Takes choices of which a part says no more of a required property than the branch. Returns false if such a property
// can certainly have no value.
bool SchemaShapes::settle_values(Branch& branch) {
  std::map<std::string_view, std::vector<NodeId>> values;
  for (const NodeId id : branch.nodes) {
    spend(1 + nodes_[id].weight_of_properties());
    for (const auto& [property, schema] : nodes_[id].properties) {
      if (branch.required.contains(property)) values[property].push_back(schema);
    }
  }
  const bool empty = std::any_of(values.begin(), values.end(), [&](const auto& value) {
    return value.second.size() > 1 && certainly_empty(value.second);
  });
  if (empty) return false;
  const auto holds = [&](NodeId id) {
    const SchemaNode& node = nodes_[id];
    if (!node.is_of_one_property) return false;
    const auto& [name, value] = node.properties.front();
    const auto known = values.find(name);
    if (known == values.end()) return false;
    std::vector<NodeId> others = known->second;
    others.push_back(nodes_.inverse(value));
    return certainly_empty(std::move(others));
  };
  std::erase_if(branch.choices,
                [&](const std::vector<NodeId>& choice) { return std::any_of(choice.begin(), choice.end(), holds); });
  return true;
}

bool SchemaShapes::certainly_empty(std::vector<NodeId> nodes) {
  const ShapeId shape = shape_of(std::move(nodes));
  if (bytes_[shape]) return *bytes_[shape] >= no_text;
  if (guesses_.contains(shape)) return false;
  if (nesting_ >= most_nesting) return false;
  spend(question_steps);
  ++nesting_;
  const AtEnd end{[&] { --nesting_; }};
  return solve(shape) >= no_text;
}

// Cases

ShapeCases SchemaShapes::work_out(ShapeId shape) {
  ShapeCases cases;
  const std::vector<NodeId> nodes = shapes_[shape];
  for (const JsonType type : json_types) {
    Branches expanded;
    Branch start;
    const bool possible = std::all_of(nodes.begin(), nodes.end(), [&](NodeId id) { return add(type, start, id); });
    if (possible) expand(type, std::move(start), expanded);
    std::vector<std::vector<NodeId>>& branches = expanded.all;
    if (branches.empty()) continue;
    if (type == JsonType::object || type == JsonType::array) {
      for (std::vector<NodeId>& branch : branches) add_unevaluated(branch);
    }
    switch (type) {
      case JsonType::null:
        cases.null = true;
        break;
      case JsonType::boolean:
        for (const std::vector<NodeId>& branch : branches) {
          const auto all = [&](bool SchemaNode::*flag) {
            return std::all_of(branch.begin(), branch.end(), [&](NodeId id) { return nodes_[id].*flag; });
          };
          cases.true_too = cases.true_too || all(&SchemaNode::true_too);
          cases.false_too = cases.false_too || all(&SchemaNode::false_too);
        }
        break;
      case JsonType::string:
        cases.string = string_case(branches);
        break;
      case JsonType::number:
        number_case(branches, cases);
        break;
      case JsonType::object:
        for (const std::vector<NodeId>& branch : branches) object_case(branch, cases);
        break;
      case JsonType::array:
        for (const std::vector<NodeId>& branch : branches) array_case(branch, cases);
        break;
    }
  }
  return cases;
}

StringCase SchemaShapes::string_of(const std::vector<NodeId>& branch) {
  StringCase result;
  for (const NodeId id : branch) {
    const SchemaNode& node = nodes_[id];
    result.min = std::max(result.min, node.min_length);
    if (node.max_length) result.max = std::min(*node.max_length, result.max.value_or(*node.max_length));
    for (const AutomatonId automaton : node.strings) {
      result.automaton = result.automaton ? automata().both(*result.automaton, automaton) : automaton;
    }
  }
  const bool limited = result.min > 0 || result.max;
  if (!result.automaton || !limited) return result;
  const std::size_t states = automata()[*result.automaton].states();
  if (result.max && states * (*result.max + 1) > most_product_states) return result;
  return {automaton_of(result), 0, std::nullopt};
}

AutomatonId SchemaShapes::automaton_of(const StringCase& string) {
  if (string.automaton && string.min == 0 && !string.max) return *string.automaton;
  const std::string key =
      "lengths " + std::to_string(string.min) + (string.max ? " " + std::to_string(*string.max) : "");
  const AutomatonId lengths = automata().cached(key, [&] { return Automaton::of_lengths(string.min, string.max); });
  return string.automaton ? automata().both(*string.automaton, lengths) : lengths;
}

bool SchemaShapes::is_empty(const StringCase& string) {
  if (!string.automaton) return string.max && *string.max < string.min;
  return automata()[*string.automaton].empty() || string_bytes(string) >= no_text;
}

const BoundedStrings& SchemaShapes::bounded(const StringCase& string) {
  const auto known = bounded_.find(string);
  if (known != bounded_.end()) return known->second;
  return bounded_.emplace(string, BoundedStrings(automata()[*string.automaton], string.min, *string.max)).first->second;
}

BoundedStrings::BoundedStrings(const Automaton& automaton, std::size_t min, std::size_t max)
    : states_(automaton.states()), min_(min), max_(max), alike_(max - std::min(max, min + states_)) {
  const std::size_t last = max - alike_;
  if (last >= most_bounded / (states_ + 1)) {
    throw Error("the pattern or format of a string is too complex for its length; make minLength less");
  }
  // Many edges of a state lead to the same one.
  struct Way {
    Automaton::State to;
    std::uint32_t bytes;
  };
  std::vector<std::vector<Way>> ways(states_);
  std::size_t all_ways = 0;
  for (Automaton::State state = 0; state < states_; ++state) {
    std::map<Automaton::State, std::uint32_t> shortest;
    for (auto [edge, end] = automaton.edges(state); edge != end; ++edge) {
      const auto bytes = static_cast<std::uint32_t>(json_bytes_of(edge->first, edge->last));
      const auto [place, added] = shortest.try_emplace(edge->to, bytes);
      if (!added) place->second = std::min(place->second, bytes);
    }
    for (const auto& [to, bytes] : shortest) ways[state].push_back({to, bytes});
    all_ways += ways[state].size();
  }
  for (std::size_t paid = 0; paid <= last; paid += ways_in_a_step) spend(2 * states_ + all_ways);
  bytes_.assign(states_ * (last + 1), none);
  for (std::size_t row = last + 1; row-- > 0;) {
    std::uint32_t* const now = bytes_.data() + row * states_;
    for (Automaton::State state = 0; state < states_; ++state) {
      if (row >= min && automaton.accepts_at(state)) now[state] = 0;
      if (row == last) continue;
      for (const Way& way : ways[state]) {
        const std::uint32_t rest = (now + states_)[way.to];
        if (rest != none) now[state] = std::min(now[state], rest + way.bytes);
      }
    }
  }
  find_safe_length();
}

void BoundedStrings::find_safe_length() {
  for (std::size_t length = 0; length <= max_; ++length) {
    if (length == min_ + 1) length += std::min(alike_, max_ - length);
    for (Automaton::State state = 0; state < states_; ++state) {
      const std::uint64_t rest = bytes(state, length);
      if (rest >= no_text) return;
      most_bytes_ = std::max(most_bytes_, rest);
    }
    safe_length_ = length;
  }
}

std::optional<StringCase> SchemaShapes::string_case(const std::vector<std::vector<NodeId>>& branches) {
  std::set<StringCase> possible;
  for (const std::vector<NodeId>& branch : branches) {
    const StringCase next = string_of(branch);
    if (is_empty(next)) continue;
    if (!next.automaton && next.min == 0 && !next.max) return next;
    possible.insert(next);
  }
  if (possible.empty()) return std::nullopt;
  if (possible.size() == 1) return *possible.begin();
  std::vector<AutomatonId> parts;
  for (const StringCase& string : possible) parts.push_back(automaton_of(string));
  return StringCase{automata().any_of(std::move(parts)), 0, std::nullopt};
}

// What the numbers of a branch must be multiples of, all together, and whether the automata of each do for that.
std::pair<std::optional<Decimal>, bool> SchemaShapes::divisor_of(const std::vector<NodeId>& branch) {
  std::optional<Decimal> divisor;
  bool has_automata = true;
  for (const NodeId id : branch) {
    for (const Decimal& its : nodes_[id].divisors) {
      divisor = divisor ? least_common_multiple(*divisor, its) : its;
      if (!divisor) nodes_.fail(id, "the multiples of several numbers are not supported together, expected one");
      has_automata = has_automata && automata().multiples(its);
    }
  }
  return {divisor, has_automata};
}

ShapeCases::OfMultiples SchemaShapes::number_of(const std::vector<NodeId>& branch, bool automata_do) {
  bool whole = false, fraction = false;
  std::vector<AutomatonId> parts;
  auto [divisor, has_automata] = divisor_of(branch);
  has_automata = has_automata && automata_do;
  for (const NodeId id : branch) {
    const SchemaNode& node = nodes_[id];
    for (const Decimal& its : node.divisors) {
      if (!has_automata) break;
      parts.push_back(*automata().multiples(its));
    }
    whole = whole || node.whole;
    fraction = fraction || node.fraction;
    parts.insert(parts.end(), node.numbers.begin(), node.numbers.end());
    const auto bound = [&](const char* side, const NumberBound& value, Automaton (*make)(const NumberBound&, bool)) {
      const std::string key = std::string(side) + (value.exclusive ? "x " : " ") + (value.value.negative ? "-" : "") +
                              value.value.digits + "e" + std::to_string(value.value.exponent);
      parts.push_back(automata().cached(key, [&] { return make(value, style_.any_spelling); }));
    };
    for (const NumberBound& value : node.from) bound("from", value, numbers_from);
    for (const NumberBound& value : node.to) bound("to", value, numbers_to);
  }
  if (fraction) parts.push_back(automata().cached("fractions", fractions));
  if (whole && style_.closed) {
    parts.push_back(automata().cached("plain integer", [] { return numbers(NumberTexts::plain_integer); }));
  } else if (whole) {
    parts.push_back(automata().cached("integer", [] { return numbers(NumberTexts::integer); }));
  }
  const Multiples* multiples = nullptr;
  if (divisor && !has_automata) {
    parts.insert(parts.begin(), automata().cached("exact", [] { return numbers(NumberTexts::exact); }));
    multiples = &multiples_.try_emplace({divisor->digits, divisor->exponent}, *divisor).first->second;
  }
  if (parts.empty()) parts.push_back(automata().cached("number", [] { return numbers(NumberTexts::any); }));
  AutomatonId result = parts.front();
  for (const AutomatonId part : parts) result = automata().both(result, part);
  return {result, multiples};
}

void SchemaShapes::number_case(const std::vector<std::vector<NodeId>>& branches, ShapeCases& cases) {
  std::vector<AutomatonId> possible;
  for (const std::vector<NodeId>& branch : branches) {
    ShapeCases::OfMultiples next{};
    try {
      next = number_of(branch, true);
    } catch (const TooMuchWork&) {
      throw;
    } catch (const Error&) {
      if (!divisor_of(branch).first) throw;
      next = number_of(branch, false);  // the automata have too many states together
    }
    const Automaton& automaton = automata()[next.automaton];
    if (automaton.empty()) continue;
    if (next.multiples == nullptr) {
      possible.push_back(next.automaton);
    } else if (next.multiples->characters_to_end(automaton, 0, {})) {
      cases.multiples.push_back(next);
    }
  }
  if (!possible.empty()) cases.number = automata().any_of(std::move(possible));
}

// The conditions on the value of each of these properties, whose names are also given as code points.
std::vector<std::vector<NodeId>> SchemaShapes::value_nodes(const std::vector<NodeId>& branch,
                                                           const std::vector<std::string>& names,
                                                           const std::vector<std::u32string>& texts) {
  std::map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < names.size(); ++i) places.emplace(names[i], i);
  std::vector<std::vector<NodeId>> values(names.size());
  for (const NodeId id : branch) {
    const SchemaNode& node = nodes_[id];
    std::vector<bool> named(node.additional ? names.size() : 0);
    const auto add = [&](std::size_t place, NodeId schema) {
      values[place].push_back(schema);
      if (node.additional) named[place] = true;
    };
    spend(1 + node.weight_of_properties());
    for (const auto& [property, schema] : node.properties) add(places.at(property), schema);
    for (const auto& [pattern, schema] : node.patterns) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        spend(1 + names[i].size());
        if (nodes_.automata()[pattern].accepts(texts[i])) add(i, schema);
      }
    }
    if (!node.additional) continue;
    spend(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!named[i]) values[i].push_back(*node.additional);
    }
  }
  for (std::vector<NodeId>& value : values) value = sorted(std::move(value));
  return values;
}

// The names that propertyNames allows; std::nullopt if it is missing.
std::optional<AutomatonId> SchemaShapes::property_names(const std::vector<NodeId>& branch) {
  std::vector<NodeId> names;
  for (const NodeId id : branch) names.insert(names.end(), nodes_[id].names.begin(), nodes_[id].names.end());
  if (names.empty()) return std::nullopt;
  return strings_of(std::move(names));
}

// The strings that are valid by all of the schemas.
AutomatonId SchemaShapes::strings_of(std::vector<NodeId> nodes) {
  const std::optional<StringCase> string = cases(shape_of(std::move(nodes))).string;
  if (!string) return automata().cached("no strings", [] { return Automaton(); });
  return automaton_of(*string);
}

void SchemaShapes::object_case(const std::vector<NodeId>& branch, ShapeCases& cases) {
  for (const NodeId id : branch) spend(1 + nodes_[id].weight_of_properties());
  ObjectCase object;
  std::vector<std::string> order;
  std::set<std::string> known, required;
  bool closed = false;
  for (const NodeId id : branch) {
    const SchemaNode& node = nodes_[id];
    for (const auto& [name, value] : node.properties) {
      if (known.insert(name).second) order.push_back(name);
    }
    required.insert(node.required.begin(), node.required.end());
    object.min = std::max(object.min, node.min_properties);
    if (node.max_properties) object.max = std::min(*node.max_properties, object.max.value_or(*node.max_properties));
    object.some.insert(object.some.end(), node.some.begin(), node.some.end());
    closed = closed || node.lists_properties || !node.properties.empty();
  }
  for (const NodeId id : branch) {
    const SchemaNode& node = nodes_[id];
    for (const std::string& name : node.required) {
      if (known.insert(name).second) order.push_back(name);
    }
    if (node.additional || !node.patterns.empty()) closed = false;
  }
  if (object.some.size() > most_conditions) nodes_.fail(branch.front(), "too many conditions on some property");
  for (SchemaNode::SomeProperty& some : object.some) {
    if (some.name) some.names = strings_of({*some.name});
  }
  const std::optional<AutomatonId> names = property_names(branch);
  if (object.max && *object.max < object.min) return;
  std::vector<std::u32string> texts;
  for (const std::string& name : order) {
    spend(1 + name.size());
    texts.push_back(code_points_of(name));
  }
  std::vector<std::vector<NodeId>> values = value_nodes(branch, order, texts);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string& name = order[i];
    ObjectCase::Property property{name, std::move(values[i]), 0, required.contains(name), text_bytes(texts[i])};
    const bool never =
        std::find(property.value.begin(), property.value.end(), nodes_.never()) != property.value.end() ||
        (names && !automata()[*names].accepts(texts[i]));
    if (never && property.required) return;
    if (never) continue;
    property.shape = shape_of(property.value);
    object.properties.push_back(std::move(property));
  }
  if (!style_.closed || !closed || !object.some.empty()) {
    AutomatonId others = names.value_or(automata().cached("all strings", Automaton::everything));
    if (!texts.empty()) {
      std::sort(order.begin(), order.end());
      std::string key = "names";
      for (const std::string& name : order) key += fmt::format(" {} {}", name.size(), name);
      const AutomatonId named = automata().cached(key, [&] { return Automaton::of_texts(texts); });
      others = automata().both(others, automata().complement(named));
    }
    add_others(branch, others, object);
  }
  objects_.push_back(std::move(object));
  cases.objects.push_back(&objects_.back());
}

// Splits the names by the patterns that they match.
void SchemaShapes::add_others(const std::vector<NodeId>& branch, AutomatonId names, ObjectCase& object) {
  struct Class {
    AutomatonId names;
    std::set<AutomatonId> matched;
  };
  std::set<AutomatonId> patterns;
  for (const NodeId id : branch) {
    for (const auto& [pattern, value] : nodes_[id].patterns) patterns.insert(pattern);
  }
  for (const SchemaNode::SomeProperty& some : object.some) patterns.insert(some.names);
  std::vector<Class> classes{{names, {}}};
  for (const AutomatonId pattern : patterns) {
    spend(classes.size() * patterns.size());
    std::vector<Class> split;
    for (Class& part : classes) {
      Class inside{automata().both(part.names, pattern), part.matched};
      inside.matched.insert(pattern);
      part.names = automata().both(part.names, automata().complement(pattern));
      for (Class* half : {&inside, &part}) {
        if (!automata()[half->names].empty()) split.push_back(std::move(*half));
      }
    }
    classes = std::move(split);
    charge(branch.front());
  }
  for (const Class& part : classes) {
    if (automata()[part.names].empty()) continue;
    spend(1 + object.others.size() / properties_in_a_step);
    ObjectCase::Others others{part.names, {}, 0, 0};
    for (const NodeId id : branch) {
      bool named = false;
      for (const auto& [pattern, value] : nodes_[id].patterns) {
        if (!part.matched.contains(pattern)) continue;
        others.value.push_back(value);
        named = true;
      }
      if (!named && nodes_[id].additional) others.value.push_back(*nodes_[id].additional);
    }
    for (std::size_t i = 0; i < object.some.size(); ++i) {
      if (part.matched.contains(object.some[i].names)) others.some |= 1U << i;
    }
    if (std::find(others.value.begin(), others.value.end(), nodes_.never()) != others.value.end()) continue;
    others.shape = shape_of(others.value);
    // Of few names it matters which were there: they are not repeated.
    if (const auto texts = automata()[part.names].texts(most_known_names)) {
      for (const std::u32string& text : *texts) {
        std::string name;
        for (const char32_t c : text) append_utf8(name, c);
        object.properties.push_back({std::move(name), others.value, others.shape, false, text_bytes(text)});
      }
      continue;
    }
    const auto same = std::find_if(object.others.begin(), object.others.end(), [&](const ObjectCase::Others& known) {
      return known.shape == others.shape && known.some == others.some;
    });
    if (same == object.others.end()) {
      object.others.push_back(std::move(others));
    } else {
      same->names = automata().either(same->names, others.names);
    }
  }
}

void SchemaShapes::array_case(const std::vector<NodeId>& branch, ShapeCases& cases) {
  spend(branch.size());
  ArrayCase array;
  std::size_t prefix = 0;
  for (const NodeId id : branch) {
    const SchemaNode& node = nodes_[id];
    prefix = std::max(prefix, node.prefix.size());
    array.min = std::max(array.min, node.min_items);
    if (node.max_items) array.max = std::min(*node.max_items, array.max.value_or(*node.max_items));
    array.unique = array.unique || node.unique;
    array.contains.insert(array.contains.end(), node.contains.begin(), node.contains.end());
    if (node.items) array.rest.push_back(*node.items);
  }
  array.rest = sorted(std::move(array.rest));
  for (std::size_t i = 0; i < prefix; ++i) {
    spend(1 + branch.size());
    std::vector<NodeId> item;
    for (const NodeId id : branch) {
      const SchemaNode& node = nodes_[id];
      if (i < node.prefix.size()) {
        item.push_back(node.prefix[i]);
      } else if (node.items) {
        item.push_back(*node.items);
      }
    }
    array.prefix.push_back(sorted(std::move(item)));
  }
  if (!array.contains.empty() && array.min > most_counted_items) {
    nodes_.fail(branch.front(), "minItems is too large next to contains");
  }
  for (const SchemaNode::Contains& contains : array.contains) {
    if (contains.min > most_counted_items || contains.max.value_or(0) > most_counted_items) {
      nodes_.fail(branch.front(), "minContains or maxContains is too large");
    }
  }
  if (array.max && *array.max < array.min) return;
  arrays_.push_back(std::move(array));
  cases.arrays.push_back(&arrays_.back());
}

// The shortest texts

std::uint64_t SchemaShapes::bytes(ShapeId shape) {
  if (bytes_[shape]) return *bytes_[shape];
  if (!leaves_out_ || !in_progress_.empty()) return solve(shape);
  const WorkLimit limit(prepares_ ? most_value_steps : most_late_value_steps, "a value");
  try {
    return solve(shape);
  } catch (const TooMuchWork&) {
    if (!limit.exceeded()) throw;
    cases_[shape] = ShapeCases();
    return *(bytes_[shape] = no_text);
  }
}

// Starts from no text for any shape. Those that a shape asked for come before it, and when one gets shorter all that
// asked for it are worked out again.
std::uint64_t SchemaShapes::solve(ShapeId shape) {
  Solution solution;
  Solution* const outer = std::exchange(solution_, &solution);
  const AtEnd end{[&] {
    solution_ = outer;
    guessed_rests_.clear();
  }};
  if (const std::uint64_t guess = known_bytes(shape); solution.parts.empty()) return guess;
  while (!solution.pending.empty()) {
    const std::size_t last = *solution.pending.rbegin();
    solution.pending.erase(last);
    solution.asking = last;
    guessed_rests_.clear();
    const std::uint64_t bytes = compute_bytes(solution.parts[last].shape);
    if (bytes >= solution.parts[last].bytes) continue;
    solution.parts[last].bytes = bytes;
    spend(solution.parts[last].users.size());
    solution.pending.insert(solution.parts[last].users.begin(), solution.parts[last].users.end());
  }
  // What has no text even where those in progress are taken for empty ones never has one.
  for (const Solution::Part& part : solution.parts) {
    if (!solution.guessed || part.bytes >= no_text) {
      bytes_[part.shape] = part.bytes;
    } else if (guesses_.try_emplace(part.shape, Guess{part.bytes, *solution.guessed}).second) {
      guessed_at_[*solution.guessed].push_back(part.shape);
    }
  }
  return solution.parts.front().bytes;
}

std::uint64_t SchemaShapes::known_bytes(ShapeId shape) {
  if (bytes_[shape]) return *bytes_[shape];
  if (solution_ == nullptr) return solve(shape);
  const auto guess = [&](std::uint64_t bytes, std::size_t level) {
    solution_->guessed = std::max(solution_->guessed.value_or(level), level);
    return bytes;
  };
  if (const auto place = in_progress_.find(shape); place != in_progress_.end()) return guess(0, place->second);
  if (const auto known = guesses_.find(shape); known != guesses_.end()) {
    return guess(known->second.bytes, known->second.level);
  }
  spend(1);
  const auto [place, is_new] = solution_->places.try_emplace(shape, solution_->parts.size());
  if (is_new) {
    solution_->parts.push_back({shape, no_text, {}});
    solution_->pending.insert(place->second);
  }
  Solution::Part& part = solution_->parts[place->second];
  if (solution_->asking) part.users.insert(*solution_->asking);
  return part.bytes;
}

std::uint64_t SchemaShapes::compute_bytes(ShapeId shape) {
  if (!leaves_out_) return bytes_of_cases(shape);
  try {
    return bytes_of_cases(shape);
  } catch (const TooMuchWork&) {
    throw;
  } catch (const Error&) {
    cases_[shape] = ShapeCases();
    return no_text;
  }
}

std::uint64_t SchemaShapes::bytes_of_cases(ShapeId shape) {
  const ShapeCases& all = cases(shape);
  std::uint64_t shortest = no_text;
  const auto take = [&](std::uint64_t bytes) { shortest = std::min(shortest, bytes); };
  if (all.null || all.true_too) take(4);
  if (all.false_too) take(5);
  if (all.string) take(string_bytes(*all.string));
  if (all.number) take(automata().bytes(*all.number).front());
  for (const auto& [automaton, multiples] : all.multiples) {
    take(*multiples->characters_to_end(automata()[automaton], 0, {}));
  }
  for (const ArrayCase* array : all.arrays) {
    take(added(1, rest_of_array(*array, start_of(*array))));
  }
  for (const ObjectCase* object : all.objects) {
    ObjectProgress start;
    start.seen.resize(object->properties.size());
    take(added(1, rest_of_object(*object, start)));
  }
  return shortest;
}

std::uint64_t SchemaShapes::string_bytes(const StringCase& string) {
  if (!string.automaton) return added(string.min, 2);
  if (automata()[*string.automaton].empty()) return no_text;
  if (string.max) return added(bounded(string).bytes(0, 0), 2);
  return automata().bytes(*string.automaton).front() + 2;
}

std::size_t SchemaShapes::ObjectProgress::count() const {
  return others + static_cast<std::size_t>(std::count(seen.begin(), seen.end(), true));
}

// "name":value,
std::uint64_t SchemaShapes::member_bytes(std::uint64_t name_bytes, ShapeId value) {
  return added(name_bytes + 4, known_bytes(value));
}

std::uint64_t SchemaShapes::cheapest_others(const ObjectCase& object) {
  std::uint64_t cheapest = no_text;
  for (const ObjectCase::Others& others : object.others) {
    cheapest = std::min(cheapest, member_bytes(automata().bytes(others.names).front(), others.shape));
  }
  return cheapest;
}

// The bytes of the shortest members, by their number, that fulfil all open conditions on some property, with the
// required ones: of each member it is open which of the conditions it fulfils.
std::vector<std::uint64_t> SchemaShapes::members_of_some(const ObjectCase& object, const ObjectProgress& progress) {
  const std::uint32_t open = ((1U << object.some.size()) - 1) & ~progress.some;
  std::size_t most = 0;
  for (std::size_t i = 0; i < object.properties.size(); ++i) {
    most += object.properties[i].required && !progress.seen[i] ? 1 : 0;
  }
  most += static_cast<std::size_t>(std::popcount(open));
  if (object.max) most = std::min(most, *object.max - std::min(*object.max, progress.count()));
  // [conditions that are fulfilled or were before][members]
  using Bytes = std::vector<std::vector<std::uint64_t>>;
  Bytes bytes(open + 1, std::vector<std::uint64_t>(most + 1, no_text));
  bytes[0][0] = 0;
  const auto add = [&](Bytes& to, const Bytes& before, std::uint64_t name_bytes, const std::vector<NodeId>& value,
                       std::uint32_t possible, bool may_be_none) {
    for (std::uint32_t chosen = possible; chosen != 0 || may_be_none; chosen = (chosen - 1) & possible) {
      std::vector<NodeId> nodes = value;
      for (std::size_t i = 0; i < object.some.size(); ++i) {
        if ((chosen >> i & 1) != 0) nodes.push_back(object.some[i].value);
      }
      const std::uint64_t member = member_bytes(name_bytes, shape_of(std::move(nodes)));
      for (std::uint32_t done = open; member < no_text; done = (done - 1) & open) {
        spend(1 + most / properties_in_a_step);
        for (std::size_t count = 0; count < most; ++count) {
          std::uint64_t& after = to[done | chosen][count + 1];
          after = std::min(after, added(before[done][count], member));
        }
        if (done == 0) break;
      }
      if (chosen == 0) break;
    }
  };
  for (std::size_t i = progress.next; i < object.properties.size(); ++i) {
    const ObjectCase::Property& property = object.properties[i];
    if (progress.seen[i]) continue;
    std::uint32_t possible = 0;
    for (std::size_t k = 0; k < object.some.size(); ++k) {
      const bool is_open = (open >> k & 1) != 0;
      if (is_open && automata()[object.some[k].names].accepts(code_points_of(property.name))) possible |= 1U << k;
    }
    if (possible == 0 && !property.required) continue;
    const Bytes before = bytes;
    if (property.required) bytes.assign(bytes.size(), std::vector<std::uint64_t>(most + 1, no_text));
    add(bytes, before, property.name_bytes, property.value, possible, property.required);
  }
  // Any number of others may follow.
  for (std::size_t turn = 0; turn < most; ++turn) {
    const Bytes before = bytes;
    for (const ObjectCase::Others& others : object.others) {
      add(bytes, before, automata().bytes(others.names).front(), others.value, others.some & open, false);
    }
    if (bytes == before) break;
  }
  return bytes[open];
}

// The bytes of the shortest members that an object of so many has to have beside those that are required.
std::uint64_t SchemaShapes::more_bytes(const ObjectCase& object, const ObjectProgress& progress, std::size_t count) {
  if (count >= object.min) return 0;
  std::size_t more = object.min - count;
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> optional;
  for (std::size_t i = progress.next; i < object.properties.size(); ++i) {
    const ObjectCase::Property& property = object.properties[i];
    if (property.required || progress.seen[i]) continue;
    const std::uint64_t member = member_bytes(property.name_bytes, property.shape);
    if (member < no_text) optional.push_back(member);
  }
  std::sort(optional.begin(), optional.end());
  for (std::size_t i = 0; i < optional.size() && more > 0; ++i, --more) bytes = added(bytes, optional[i]);
  if (more == 0) return bytes;
  const std::uint64_t each = cheapest_others(object);
  if (each >= no_text) return no_text;
  return added(bytes, each * std::min<std::uint64_t>(more, no_text / std::max<std::uint64_t>(each, 1)));
}

std::uint64_t SchemaShapes::rest_of_object(const ObjectCase& object, const ObjectProgress& progress) {
  spend(1 + object.properties.size() / properties_in_a_step);
  const std::size_t count = progress.count();
  std::size_t missing = 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < object.properties.size(); ++i) {
    const ObjectCase::Property& property = object.properties[i];
    if (!property.required || progress.seen[i]) continue;
    if (i < progress.next) return no_text;
    ++missing;
    bytes = added(bytes, member_bytes(property.name_bytes, property.shape));
  }
  if ((progress.some + 1) >> object.some.size() == 0) {
    const std::vector<std::uint64_t> by_count = members_of_some(object, progress);
    bytes = no_text;
    for (std::size_t members = 0; members < by_count.size(); ++members) {
      const std::uint64_t each = added(by_count[members], more_bytes(object, progress, count + members));
      bytes = std::min(bytes, each);
    }
  } else {
    if (object.max && count + missing > *object.max) return no_text;
    bytes = added(bytes, more_bytes(object, progress, count + missing));
  }
  if (bytes >= no_text) return no_text;
  // Each member has a comma, of which the first one of an object takes none.
  const bool first = count == 0 && bytes > 0;
  return added(bytes, first ? 0 : 1);
}

// The bytes of the value of each property and all that follows it, as rest_of_object() has them; no_text for one that
// may not come next.
std::vector<std::uint64_t> SchemaShapes::rests_with_each(const ObjectCase& object, const ObjectProgress& progress) {
  spend(1 + object.properties.size() / properties_in_a_step);
  if (style_.closed && object.some.empty()) return rests_in_order(object, progress);
  std::vector<std::uint64_t> rests(object.properties.size(), no_text);
  ObjectProgress after = progress;
  for (std::size_t i = progress.next; i < object.properties.size(); ++i) {
    const ObjectCase::Property& property = object.properties[i];
    if (progress.seen[i]) continue;
    if (const std::uint64_t value = bytes(property.shape); value < no_text) {
      after.seen[i] = true;
      after.next = style_.closed ? i + 1 : 0;
      rests[i] = added(value, rest_of_object(object, after));
      after.seen[i] = false;
    }
    if (style_.closed && property.required) break;
  }
  return rests;
}

// As rests_with_each(), without conditions on some property. From the last property to the first, `shortest` has the
// shortest members of those after it, as many as must still follow.
std::vector<std::uint64_t> SchemaShapes::rests_in_order(const ObjectCase& object, const ObjectProgress& progress) {
  const std::vector<ObjectCase::Property>& properties = object.properties;
  std::vector<std::uint64_t> rests(properties.size(), no_text);
  std::size_t first_missing = properties.size(), missing = 0;
  std::uint64_t missing_bytes = 0;
  for (std::size_t i = properties.size(); i-- > progress.next;) {
    if (!properties[i].required) continue;
    first_missing = i;
    ++missing;
    missing_bytes = added(missing_bytes, member_bytes(properties[i].name_bytes, properties[i].shape));
  }
  const std::size_t with_one = progress.count() + missing + 1;
  const std::size_t more = object.min - std::min(object.min, with_one);
  const std::uint64_t each = more > 0 ? cheapest_others(object) : 0;
  std::priority_queue<std::uint64_t> shortest;
  std::uint64_t sum = 0;
  for (std::size_t i = properties.size(); i-- > progress.next;) {
    if (properties[i].required) continue;
    const std::uint64_t value = bytes(properties[i].shape);
    if (value >= no_text) continue;
    if (i < first_missing && (!object.max || with_one <= *object.max)) {
      const std::size_t unnamed = more - shortest.size();
      const bool possible = unnamed == 0 || each < no_text / unnamed;
      if (possible) rests[i] = added(value, added(missing_bytes, sum + each * unnamed + 1));
    }
    const std::uint64_t member = member_bytes(properties[i].name_bytes, properties[i].shape);
    shortest.push(member);
    sum += member;
    if (shortest.size() <= more) continue;
    sum -= shortest.top();
    shortest.pop();
  }
  if (first_missing == properties.size()) return rests;
  ObjectProgress after = progress;
  after.seen[first_missing] = true;
  after.next = first_missing + 1;
  rests[first_missing] = added(bytes(properties[first_missing].shape), rest_of_object(object, after));
  return rests;
}

bool SchemaShapes::may_close(const ArrayCase& array, const ArrayProgress& progress) const {
  for (std::size_t i = 0; i < array.contains.size(); ++i) {
    if (progress.contains[i] < array.contains[i].min) return false;
  }
  return progress.count >= array.min;
}

// The values of an array of distinct items, if they are few; otherwise none.
const std::vector<NodeId>& SchemaShapes::few_values(const ArrayCase& array) {
  static const std::vector<NodeId> none;
  if (array.values) return *array.values;
  if (!array.unique || !array.prefix.empty() || !array.contains.empty()) return *(array.values = none);
  const ShapeId item = shape_of(array.rest);
  if (in_progress_.contains(item)) return none;
  const ShapeCases& possible = cases(item);
  const bool finite =
      possible.objects.empty() && possible.arrays.empty() && !possible.number && possible.multiples.empty();
  std::optional<std::vector<std::u32string>> texts = std::vector<std::u32string>();
  if (possible.string) {
    texts = std::nullopt;
    if (possible.string->automaton && !possible.string->max)
      texts = automata()[*possible.string->automaton].texts(most_values);
  }
  if (!finite || !texts) return *(array.values = none);
  std::vector<NodeId> values;
  const auto add = [&](JsonType type, auto set) {
    SchemaNode node;
    node.types = bit_of(type);
    set(node);
    values.push_back(nodes_.add(std::move(node)));
  };
  for (const std::u32string& text : *texts) {
    add(JsonType::string,
        [&](SchemaNode& node) { node.strings.push_back(automata().add(Automaton::of_texts({text}))); });
  }
  if (possible.null) add(JsonType::null, [](SchemaNode&) {});
  if (possible.true_too) add(JsonType::boolean, [](SchemaNode& node) { node.false_too = false; });
  if (possible.false_too) add(JsonType::boolean, [](SchemaNode& node) { node.true_too = false; });
  return *(array.values = std::move(values));
}

// As rest_of_array(), with the shortest values that are not used yet.
std::uint64_t SchemaShapes::rest_of_values(const ArrayCase& array, const ArrayProgress& progress) {
  const std::vector<NodeId>& values = few_values(array);
  std::vector<std::uint64_t> left;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i >= progress.used.size() || !progress.used[i]) left.push_back(known_bytes(shape_of({values[i]})));
  }
  if (progress.count + left.size() < array.min) return no_text;
  std::sort(left.begin(), left.end());
  std::uint64_t bytes = progress.count > 0 ? 1 : 0;
  for (std::size_t i = 0; progress.count + i < array.min; ++i) bytes = added(bytes, left[i] + 1);
  return bytes;
}

// The items that may come next. Counts beyond what can matter are not distinguished.
std::vector<SchemaShapes::ItemChoice> SchemaShapes::next_items(const ArrayCase& array, const ArrayProgress& progress) {
  std::vector<ItemChoice> choices;
  if (array.max && progress.count >= *array.max) return choices;
  const std::vector<NodeId>& values = few_values(array);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ArrayProgress after = progress;
    after.used.resize(values.size());
    if (after.used[i]) continue;
    after.used[i] = true;
    ++after.count;
    choices.push_back({shape_of({values[i]}), std::move(after)});
  }
  if (!values.empty()) return choices;
  const std::size_t cap = std::max({array.min, array.prefix.size(), std::size_t{1}});
  struct Option {
    std::vector<NodeId> nodes;
    ArrayProgress after;
  };
  std::vector<Option> options{{item(array, progress.count), progress}};
  std::size_t last_from = 0;
  for (std::size_t i = 0; i < array.contains.size(); ++i) {
    const SchemaNode::Contains& contains = array.contains[i];
    last_from = std::max(last_from, contains.from);
    if (progress.count < contains.from) continue;
    std::vector<Option> next;
    for (const Option& option : options) {
      spend(1 + option.nodes.size() + option.after.contains.size());
      const std::uint32_t so_far = option.after.contains[i];
      const bool counts = so_far < contains.min || contains.max;
      if (contains.max ? so_far < *contains.max : so_far < contains.min) {
        Option yes = option;
        yes.nodes.push_back(contains.item);
        ++yes.after.contains[i];
        next.push_back(std::move(yes));
      }
      Option no = option;
      if (counts && contains.max) no.nodes.push_back(nodes_.inverse(contains.item));
      next.push_back(std::move(no));
    }
    options = std::move(next);
  }
  for (Option& option : options) {
    option.after.count = std::min(progress.count + 1, std::max(cap, last_from));
    if (array.max) option.after.count = progress.count + 1;
    choices.push_back({shape_of(std::move(option.nodes)), std::move(option.after)});
  }
  return choices;
}

// As rest_of_array(), if no other progress has to be looked at first.
std::optional<std::uint64_t> SchemaShapes::known_rest(const ArrayCase& array, const ArrayProgress& progress) {
  if (may_close(array, progress)) return 1;
  if (!few_values(array).empty()) return rest_of_values(array, progress);
  if (!array.contains.empty()) {
    spend(32 + progress.contains.size());
    const auto known = array_rests_.find({&array, progress});
    if (known != array_rests_.end()) return known->second;
    const auto guessed = guessed_rests_.find({&array, progress});
    return guessed == guessed_rests_.end() ? std::nullopt : std::optional(guessed->second);
  }
  // One comma or bracket for each item.
  spend(1 + std::min(array.min, array.prefix.size()));
  std::uint64_t bytes = progress.count > 0 ? 1 : 0;
  std::size_t at = progress.count;
  for (; at < array.min && at < array.prefix.size(); ++at) {
    bytes = added(bytes, added(1, known_bytes(shape_of(array.prefix[at]))));
  }
  if (at == array.min) return bytes;
  const std::uint64_t each = known_bytes(shape_of(array.rest)) + 1;
  if (each >= no_text || array.min - at > no_text / each) return no_text;
  return added(bytes, each * (array.min - at));
}

// An array may have to have thousands of items, so that what is being looked at is kept here and not as calls.
std::uint64_t SchemaShapes::rest_of_array(const ArrayCase& array, const ArrayProgress& progress) {
  if (const auto known = known_rest(array, progress)) return *known;
  struct Open {
    ArrayProgress progress;
    std::vector<ItemChoice> choices;
    std::size_t next = 0;
    std::uint64_t shortest = no_text;
  };
  std::vector<Open> open;
  open.push_back({progress, next_items(array, progress)});
  while (true) {
    Open& last = open.back();
    if (last.next == last.choices.size()) {
      const std::uint64_t shortest = last.shortest;
      (solution_ == nullptr ? array_rests_ : guessed_rests_)[{&array, last.progress}] = shortest;
      open.pop_back();
      if (open.empty()) return shortest;
      continue;  // with the choice that led here, whose rest is known now
    }
    const ItemChoice& choice = last.choices[last.next];
    const std::uint64_t value = known_bytes(choice.shape);
    if (choice.after != last.progress && value < no_text) {
      const auto rest = known_rest(array, choice.after);
      if (!rest) {
        ArrayProgress after = choice.after;
        std::vector<ItemChoice> choices = next_items(array, after);
        open.push_back({std::move(after), std::move(choices)});
        continue;
      }
      last.shortest = std::min(last.shortest, added((last.progress.count > 0 ? 1 : 0) + value, *rest));
    }
    ++last.next;
  }
}

}  // namespace minimind
