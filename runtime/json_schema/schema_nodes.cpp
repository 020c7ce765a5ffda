#include "runtime/json_schema/schema_nodes.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "runtime/grammar/work.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

constexpr std::size_t most_nodes = 1'000'000;
constexpr std::size_t node_steps = 64;            // of making one, which has room for all kinds of conditions
constexpr std::size_t characters_in_a_step = 32;  // of texts that are copied or compared

std::size_t steps_of(const std::string& name) {
  return 1 + name.size() / characters_in_a_step;
}

}  // namespace

AutomatonId Automata::add(Automaton automaton) {
  states_ += automaton.states();
  if (states_ > most_states) {
    throw Error("the patterns and lengths of the schema are too complex together; simplify them");
  }
  automata_.push_back(std::move(automaton));
  bytes_.emplace_back();
  runs_.emplace_back();
  places_.emplace_back();
  return static_cast<AutomatonId>(automata_.size() - 1);
}

std::optional<AutomatonId> Automata::multiples(const Decimal& divisor) {
  const std::pair key(divisor.digits, divisor.exponent);
  const auto known = multiples_.find(key);
  if (known != multiples_.end()) return known->second;
  std::optional<AutomatonId> id;
  if (auto automaton = multiples_of(divisor)) id = add(std::move(*automaton));
  return multiples_[key] = id;
}

AutomatonId Automata::both(AutomatonId a, AutomatonId b) {
  if (a == b) return a;
  return cached(fmt::format("& {} {}", std::min(a, b), std::max(a, b)), [&] { return automata_[a] & automata_[b]; });
}

AutomatonId Automata::either(AutomatonId a, AutomatonId b) {
  if (a == b) return a;
  return cached(fmt::format("| {} {}", std::min(a, b), std::max(a, b)), [&] { return automata_[a] | automata_[b]; });
}

// As a tree: a text is in as many unions as the number of automata can be halved.
AutomatonId Automata::any_of(std::vector<AutomatonId> automata) {
  std::sort(automata.begin(), automata.end());
  automata.erase(std::unique(automata.begin(), automata.end()), automata.end());
  while (automata.size() > 1) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < automata.size(); i += 2) {
      automata[kept++] = i + 1 < automata.size() ? either(automata[i], automata[i + 1]) : automata[i];
    }
    automata.resize(kept);
  }
  return automata.front();
}

AutomatonId Automata::complement(AutomatonId a) {
  return cached(fmt::format("! {}", a), [&] { return automata_[a].complement(); });
}

const std::vector<std::uint64_t>& Automata::bytes(AutomatonId id) {
  if (bytes_[id].empty()) bytes_[id] = automata_[id].bytes_to_accept();
  return bytes_[id];
}

const std::vector<Automata::Run>& Automata::runs(AutomatonId id, TextKind kind) {
  std::vector<Run>& result = runs_[id][static_cast<std::size_t>(kind)];
  if (!result.empty()) return result;
  const std::vector<std::uint32_t> taken = automata_[id].characters_taken(characters_of(kind));
  std::uint64_t most = 0, most_endless = 0;
  for (std::size_t state = 0; state < taken.size(); ++state) {
    most = std::max(most, bytes(id)[state]);
    if (taken[state] == Automaton::any_number) most_endless = std::max(most_endless, bytes(id)[state]);
  }
  for (const std::uint32_t count : taken) {
    result.push_back({count, count == Automaton::any_number ? most_endless : most});
  }
  return result;
}

// From the ends of texts to their starts.
Automata::Place Automata::place_of(AutomatonId id, Automaton::State state) {
  std::vector<Place>& places = places_[id];
  if (!places.empty()) return places[state];
  const Automaton& automaton = automata_[id];
  const auto count = static_cast<Automaton::State>(automaton.states());
  std::vector<std::vector<Automaton::State>> before(count);
  std::vector<std::size_t> open(count);  // edges to states whose places are not known
  std::vector<Automaton::State> pending;
  for (Automaton::State from = 0; from < count; ++from) {
    places.push_back({id, from});
    for (auto [edge, end] = automaton.edges(from); edge != end; ++edge) {
      spend(1);
      if (edge->to == from) continue;
      before[edge->to].push_back(from);
      ++open[from];
    }
    if (open[from] == 0) pending.push_back(from);
  }
  constexpr Place itself{~0u, 0};
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const Automaton::State at = pending[i];
    std::vector<PlaceEdge> edges;
    for (auto [edge, end] = automaton.edges(at); edge != end; ++edge) {
      const Place to = edge->to == at ? itself : places[edge->to];
      if (!edges.empty() && edges.back().to == to && edges.back().last + 1 == edge->first) {
        edges.back().last = edge->last;
      } else {
        edges.push_back({edge->first, edge->last, to});
      }
    }
    places[at] = known_places_.try_emplace({automaton.accepts_at(at), std::move(edges)}, places[at]).first->second;
    for (const Automaton::State from : before[at]) {
      if (--open[from] == 0) pending.push_back(from);
    }
  }
  return places[state];
}

void Automata::prepare(AutomatonId id) {
  place_of(id, 0);
  for (const TextKind kind : {TextKind::lower, TextKind::word, TextKind::plain}) runs(id, kind);
}

SchemaNodes::SchemaNodes(const std::string& source) : source_(source) {
  SchemaNode nothing;
  nothing.types = 0;
  nothing.pointer = "#";
  never_ = add(nothing);
  always_ = add(SchemaNode());
}

std::size_t SchemaNode::weight_of_properties() const {
  std::size_t steps = patterns.size();
  for (const auto& [name, value] : properties) steps += steps_of(name);
  for (const std::string& name : required) steps += steps_of(name);
  return steps;
}

std::size_t SchemaNode::weight() const {
  std::size_t steps = weight_of_properties() + strings.size() + numbers.size() + divisors.size() + from.size() +
                      to.size() + prefix.size() + contains.size() + names.size() + some.size() + all_of.size() +
                      none_of.size() + ifs.size();
  for (const auto& [name, needed] : dependent_required) {
    steps += steps_of(name);
    for (const std::string& other : needed) steps += steps_of(other);
  }
  for (const auto& [name, schema] : dependent) steps += steps_of(name);
  for (const auto* choices : {&any_of, &one_of}) {
    for (const std::vector<NodeId>& parts : *choices) steps += 1 + parts.size();
  }
  return steps;
}

// Pays for what a node keeps, however it was made of others.
NodeId SchemaNodes::add(SchemaNode node) {
  spend(node_steps + steps_of(node.pointer) + node.weight());
  if (nodes_.size() == most_nodes) throw Error("the schema is too complex: its combinations exceed the limit");
  nodes_.push_back(std::move(node));
  return static_cast<NodeId>(nodes_.size() - 1);
}

void SchemaNodes::fail(NodeId id, std::string_view reason) const {
  const std::string& pointer = nodes_[id].pointer;  // empty if the node stands for several
  throw SchemaError(fmt::format("{}: {}: {}", source_, pointer.empty() ? "#" : pointer, reason));
}

JsonTypes SchemaNodes::types_meant(NodeId id) const {
  JsonTypes meant = 0;
  std::vector<NodeId> pending{id};
  std::set<NodeId> known{id};
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const SchemaNode& node = nodes_[pending[i]];
    const bool decided = node.types != all_types || !node.any_of.empty() || !node.one_of.empty() ||
                         !node.none_of.empty() || !node.ifs.empty();
    if (decided) return all_types;
    const bool object = node.lists_properties || !node.patterns.empty() || node.additional || node.unevaluated ||
                        !node.names.empty() || !node.required.empty() || node.min_properties > 0 || node.max_properties;
    const bool array = !node.prefix.empty() || node.items || node.unevaluated_items || node.min_items > 0 ||
                       node.max_items || node.unique || !node.contains.empty();
    const bool string = !node.strings.empty() || node.min_length > 0 || node.max_length;
    const bool number = !node.numbers.empty() || !node.divisors.empty() || !node.from.empty() || !node.to.empty();
    if (object) meant |= bit_of(JsonType::object);
    if (array) meant |= bit_of(JsonType::array);
    if (string) meant |= bit_of(JsonType::string);
    if (number) meant |= bit_of(JsonType::number);
    for (const NodeId part : node.all_of) {
      if (known.insert(part).second) pending.push_back(part);
    }
  }
  return meant == 0 ? all_types : meant;
}

bool SchemaNodes::has_unevaluated() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const SchemaNode& node) { return node.unevaluated || node.unevaluated_items; });
}

SchemaNode SchemaNodes::like(NodeId id, JsonTypes types) const {
  SchemaNode node;
  node.pointer = nodes_[id].pointer;
  node.types = types;
  return node;
}

NodeId SchemaNodes::all_of(std::vector<NodeId> nodes) {
  spend(nodes.size());
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  if (nodes.size() == 1) return nodes.front();
  const auto known = conjunctions_.find(nodes);
  if (known != conjunctions_.end()) return known->second;
  SchemaNode node = like(nodes.empty() ? always_ : nodes.front());
  node.all_of = nodes;
  const NodeId id = add(std::move(node));
  conjunctions_.emplace(std::move(nodes), id);
  return id;
}

NodeId SchemaNodes::without_logic(NodeId id) {
  const auto known = without_logic_.find(id);
  if (known != without_logic_.end()) return known->second;
  SchemaNode node = nodes_[id];
  const bool has_logic = !node.all_of.empty() || !node.none_of.empty() || !node.any_of.empty() ||
                         !node.one_of.empty() || !node.ifs.empty() || !node.dependent.empty() || node.unevaluated ||
                         node.unevaluated_items;
  if (!has_logic) return without_logic_[id] = id;
  node.all_of.clear();
  node.none_of.clear();
  node.any_of.clear();
  node.one_of.clear();
  node.ifs.clear();
  node.dependent.clear();
  node.unevaluated.reset();
  node.unevaluated_items.reset();
  return without_logic_[id] = add(std::move(node));
}

NodeId SchemaNodes::inverse(NodeId id) {
  if (id == always_) return never_;
  if (id == never_) return always_;
  const auto known = inverses_.find(id);
  if (known != inverses_.end()) return known->second;
  SchemaNode node = like(id);
  node.none_of.push_back(id);
  const NodeId result = add(std::move(node));
  inverses_[result] = id;
  return inverses_[id] = result;
}

NodeId SchemaNodes::forbidding(const std::string& property) {
  const auto known = forbidding_.find(property);
  if (known != forbidding_.end()) return known->second;
  SchemaNode node;
  node.types = bit_of(JsonType::object);
  node.properties.emplace_back(property, never_);
  return forbidding_[property] = add(std::move(node));
}

NodeId SchemaNodes::requiring(const std::string& property) {
  const auto known = requiring_.find(property);
  if (known != requiring_.end()) return known->second;
  SchemaNode node;
  node.types = bit_of(JsonType::object);
  node.required.push_back(property);
  return requiring_[property] = add(std::move(node));
}

const std::vector<NodeId>& SchemaNodes::negation(NodeId id) {
  const auto known = negations_.find(id);
  if (known != negations_.end()) return known->second;
  if (nodes_[id].unevaluated || nodes_[id].unevaluated_items) {
    fail(id,
         "unevaluatedProperties and unevaluatedItems are not supported where they must not hold: within not, if or "
         "alternatives that overlap");
  }
  std::vector<NodeId> result;
  negate_values(id, result);
  negate_arrays(id, result);
  negate_objects(id, result);
  negate_logic(id, result);
  return negations_[id] = std::move(result);
}

NodeId SchemaNodes::opposite(NodeId id, JsonType type, const std::function<void(SchemaNode&)>& change) {
  SchemaNode node = like(id, bit_of(type));
  change(node);
  return add(std::move(node));
}

// A value of another type, or one of these types outside of its set of values.
void SchemaNodes::negate_values(NodeId id, std::vector<NodeId>& result) {
  const SchemaNode& node = nodes_[id];
  if (node.types != all_types) result.push_back(add(like(id, static_cast<JsonTypes>(all_types & ~node.types))));
  const auto add_boolean = [&](const auto& change) { result.push_back(opposite(id, JsonType::boolean, change)); };
  const auto add_number = [&](const auto& change) { result.push_back(opposite(id, JsonType::number, change)); };
  const auto add_string = [&](const auto& change) { result.push_back(opposite(id, JsonType::string, change)); };
  if (node.whole || node.fraction) {
    add_number([&](SchemaNode& other) {
      other.fraction = node.whole;
      other.whole = node.fraction;
    });
  }
  if (!node.true_too || !node.false_too) {
    add_boolean([&](SchemaNode& other) {
      other.true_too = !node.true_too;
      other.false_too = !node.false_too;
    });
  }
  for (const AutomatonId automaton : node.strings) {
    add_string([&](SchemaNode& other) { other.strings.push_back(automata_.complement(automaton)); });
  }
  std::vector<AutomatonId> numbers = node.numbers;
  for (const Decimal& divisor : node.divisors) {
    const auto multiples = automata_.multiples(divisor);
    if (!multiples) fail(id, "a multipleOf over 5000 is not supported where it must not hold");
    numbers.push_back(*multiples);
  }
  for (const AutomatonId automaton : numbers) {
    // Texts with an exponent may spell a number of the set in a way that the set does not have.
    const AutomatonId plain = automata_.cached("plain", [] { return minimind::numbers(NumberTexts::plain); });
    add_number(
        [&](SchemaNode& other) { other.numbers.push_back(automata_.both(automata_.complement(automaton), plain)); });
  }
  for (const NumberBound& bound : node.from) {
    add_number([&](SchemaNode& other) { other.to.push_back({bound.value, !bound.exclusive}); });
  }
  for (const NumberBound& bound : node.to) {
    add_number([&](SchemaNode& other) { other.from.push_back({bound.value, !bound.exclusive}); });
  }
  if (node.min_length > 0) add_string([&](SchemaNode& other) { other.max_length = node.min_length - 1; });
  if (node.max_length) add_string([&](SchemaNode& other) { other.min_length = *node.max_length + 1; });
}

void SchemaNodes::negate_arrays(NodeId id, std::vector<NodeId>& result) {
  const SchemaNode& node = nodes_[id];
  const auto add_array = [&](const auto& change) { result.push_back(opposite(id, JsonType::array, change)); };
  for (std::size_t i = 0; i < node.prefix.size(); ++i) {
    add_array([&](SchemaNode& other) {
      other.prefix.assign(i, always_);
      other.prefix.push_back(inverse(node.prefix[i]));
      other.min_items = i + 1;
    });
  }
  if (node.items) {
    add_array([&](SchemaNode& other) {
      other.contains.push_back({inverse(*node.items), node.prefix.size(), 1, std::nullopt});
    });
  }
  if (node.min_items > 0) add_array([&](SchemaNode& other) { other.max_items = node.min_items - 1; });
  if (node.max_items) add_array([&](SchemaNode& other) { other.min_items = *node.max_items + 1; });
  for (const SchemaNode::Contains& contains : node.contains) {
    if (contains.min > 0) {
      add_array([&](SchemaNode& other) {
        other.contains.push_back({contains.item, contains.from, 0, contains.min - 1});
      });
    }
    if (contains.max) {
      add_array([&](SchemaNode& other) {
        other.contains.push_back({contains.item, contains.from, *contains.max + 1, std::nullopt});
      });
    }
  }
  // That items are repeated is no condition here: such arrays are rejected where uniqueItems must not hold.
}

void SchemaNodes::negate_objects(NodeId id, std::vector<NodeId>& result) {
  const SchemaNode& node = nodes_[id];
  const auto add_object = [&](const auto& change) { result.push_back(opposite(id, JsonType::object, change)); };
  std::set<std::string_view> required(node.required.begin(), node.required.end());
  AutomatonId others = automata_.cached("all strings", Automaton::everything);
  std::vector<std::u32string> named;
  for (const auto& [name, value] : node.properties) {
    spend(1 + name.size());
    named.push_back(code_points_of(name));
    if (value == always_) continue;
    // Where a property must be present, it is missing or its value is not valid: one condition.
    const bool may_be_missing = required.erase(name) > 0;
    add_object([&, &name = name, &value = value](SchemaNode& other) {
      other.is_of_one_property = true;
      if (!may_be_missing) other.required.push_back(name);
      other.properties.emplace_back(name, inverse(value));
    });
  }
  for (const std::string_view name : required) result.push_back(forbidding(std::string(name)));
  for (const auto& [names, value] : node.patterns) {
    others = automata_.both(others, automata_.complement(names));
    if (value == always_) continue;
    add_object([&, &names = names, &value = value](SchemaNode& other) {
      other.some.push_back({names, inverse(value), std::nullopt});
    });
  }
  if (node.additional && *node.additional != always_) {
    others = automata_.both(others, automata_.complement(automata_.add(Automaton::of_texts(named))));
    add_object([&](SchemaNode& other) { other.some.push_back({others, inverse(*node.additional), std::nullopt}); });
  }
  for (const NodeId name : node.names) {
    add_object([&](SchemaNode& other) { other.some.push_back({0, always_, inverse(name)}); });
  }
  if (node.min_properties > 0) add_object([&](SchemaNode& other) { other.max_properties = node.min_properties - 1; });
  if (node.max_properties) add_object([&](SchemaNode& other) { other.min_properties = *node.max_properties + 1; });
  for (const SchemaNode::SomeProperty& some : node.some) {
    add_object([&](SchemaNode& other) { other.patterns.emplace_back(some.names, inverse(some.value)); });
  }
  for (const auto& [name, needed] : node.dependent_required) {
    for (const std::string& missing : needed) {
      result.push_back(all_of({requiring(name), forbidding(missing)}));
    }
  }
  for (const auto& [name, schema] : node.dependent) result.push_back(all_of({requiring(name), inverse(schema)}));
}

void SchemaNodes::negate_logic(NodeId id, std::vector<NodeId>& result) {
  const SchemaNode& node = nodes_[id];
  for (const NodeId part : node.all_of) result.push_back(inverse(part));
  for (const NodeId part : node.none_of) result.push_back(part);
  const auto none = [&](const std::vector<NodeId>& parts) {
    std::vector<NodeId> inverses;
    for (const NodeId part : parts) inverses.push_back(inverse(part));
    return all_of(inverses);
  };
  for (const std::vector<NodeId>& parts : node.any_of) result.push_back(none(parts));
  for (const std::vector<NodeId>& parts : node.one_of) {
    result.push_back(none(parts));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) result.push_back(all_of({parts[j], parts[i]}));
    }
  }
  for (const SchemaNode::If& part : node.ifs) {
    if (part.then) result.push_back(all_of({part.condition, inverse(*part.then)}));
    if (part.otherwise) result.push_back(all_of({inverse(part.condition), inverse(*part.otherwise)}));
  }
}

}  // namespace minimind
