#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/grammar/token_trie.h"
#include "runtime/json_schema/automaton.h"
#include "runtime/json_schema/json_texts.h"
#include "weights/base/error.h"

namespace minimind {

using SchemaJson = nlohmann::ordered_json;

// An Error that names its position in a schema.
class SchemaError : public Error {
 public:
  using Error::Error;
};

// The types of JSON values that differ in their texts. A whole number is a number.
enum class JsonType : std::uint8_t { object, array, string, number, boolean, null };
constexpr std::array<JsonType, 6> json_types{JsonType::object, JsonType::array,   JsonType::string,
                                             JsonType::number, JsonType::boolean, JsonType::null};
using JsonTypes = std::uint8_t;  // a bit for each
constexpr JsonTypes bit_of(JsonType type) {
  return static_cast<JsonTypes>(1U << static_cast<unsigned>(type));
}
constexpr JsonTypes all_types = 0x3F;

using NodeId = std::uint32_t;
using AutomatonId = std::uint32_t;

struct HashOfNodes {
  std::size_t operator()(const std::vector<NodeId>& nodes) const {
    std::uint64_t hash = nodes.size();
    for (const NodeId id : nodes) {
      hash = (hash ^ id) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

// Automata of strings and of the texts of numbers, under numbers.
class Automata {
 public:
  static constexpr std::size_t most_states = 1'000'000;  // of a schema in all

  AutomatonId add(Automaton automaton);
  // Returns the automaton of a text, made once by `make`.
  template <class Make>
  AutomatonId cached(const std::string& key, Make make) {
    const auto known = by_key_.find(key);
    if (known != by_key_.end()) return known->second;
    return by_key_[key] = add(make());
  }
  // That of multiples_of(), made once; std::nullopt if there is none.
  std::optional<AutomatonId> multiples(const Decimal& divisor);
  AutomatonId both(AutomatonId a, AutomatonId b);
  AutomatonId either(AutomatonId a, AutomatonId b);
  AutomatonId any_of(std::vector<AutomatonId> automata);  // at least one
  AutomatonId complement(AutomatonId a);

  const Automaton& operator[](AutomatonId id) const { return automata_[id]; }
  std::size_t states() const { return states_; }  // of all
  // Returns Automaton::bytes_to_accept() of an automaton.
  const std::vector<std::uint64_t>& bytes(AutomatonId id);
  // A state takes every text of a kind up to this length.
  struct Run {
    std::uint32_t characters = 0;  // the length, or Automaton::any_number
    std::uint64_t bytes = 0;       // bytes() of the state after them, at most
  };
  const std::vector<Run>& runs(AutomatonId id, TextKind kind);  // [states]
  // A state of an automaton. States of different ones from which the same texts follow are one, unless loops of more
  // than one state follow.
  struct Place {
    AutomatonId automaton;
    Automaton::State state;
    auto operator<=>(const Place&) const = default;
  };
  Place place_of(AutomatonId id, Automaton::State state);
  // Works out all of these before they are needed.
  void prepare(AutomatonId id);

 private:
  std::deque<Automaton> automata_;  // references stay valid
  std::deque<std::vector<std::uint64_t>> bytes_;
  std::deque<std::array<std::vector<Run>, text_kinds>> runs_;
  std::deque<std::vector<Place>> places_;
  struct PlaceEdge {
    char32_t first, last;
    Place to;
    auto operator<=>(const PlaceEdge&) const = default;
  };
  std::map<std::pair<bool, std::vector<PlaceEdge>>, Place> known_places_;  // by whether they accept, and their edges
  std::map<std::string, AutomatonId> by_key_;
  std::map<std::pair<std::string, int>, std::optional<AutomatonId>> multiples_;  // by digits and exponent
  std::size_t states_ = 0;                                                       // of all
};

// One schema: conditions that must all hold. Conditions about one type of value say nothing about other types.
struct SchemaNode {
  struct Contains {
    NodeId item;
    std::size_t from = 0;  // items before it do not count
    std::size_t min = 1;
    std::optional<std::size_t> max;
  };
  struct SomeProperty {  // at least one property has such a name and such a value
    AutomatonId names;
    NodeId value;
    std::optional<NodeId> name;  // if set, a schema of the name instead of `names`
  };
  struct If {
    NodeId condition;
    std::optional<NodeId> then, otherwise;
  };

  std::string pointer;     // where it is, for messages
  bool evaluates = false;  // it was read as a schema: its keywords count for unevaluatedProperties and unevaluatedItems
  JsonTypes types = all_types;
  bool whole = false;     // a number is whole
  bool fraction = false;  // a number is not whole
  bool true_too = true, false_too = true;

  std::vector<AutomatonId> strings, numbers;
  std::vector<Decimal> divisors;
  std::vector<NumberBound> from, to;
  std::size_t min_length = 0;
  std::optional<std::size_t> max_length;

  std::vector<NodeId> prefix;
  std::optional<NodeId> items;  // after the prefix
  std::size_t min_items = 0;
  std::optional<std::size_t> max_items;
  std::optional<NodeId> unevaluated_items;
  bool unique = false;
  std::vector<Contains> contains;

  bool is_of_one_property =
      false;  // of its value, if there is one, and that there is one, if `required`; of nothing else
  bool lists_properties = false;  // all that it has, even if that is none
  std::vector<std::pair<std::string, NodeId>> properties;
  std::vector<std::pair<AutomatonId, NodeId>> patterns;
  std::optional<NodeId> additional, unevaluated;
  std::vector<NodeId> names;  // of strings, that all names of properties fulfil
  std::vector<std::string> required;
  std::size_t min_properties = 0;
  std::optional<std::size_t> max_properties;
  std::vector<SomeProperty> some;
  std::vector<std::pair<std::string, std::vector<std::string>>> dependent_required;
  std::vector<std::pair<std::string, NodeId>> dependent;

  std::vector<NodeId> all_of, none_of;
  std::vector<std::vector<NodeId>> any_of, one_of;
  std::vector<If> ifs;

  // Steps of work on all of its parts, and on its properties: one for each, and more for long names.
  std::size_t weight() const;
  std::size_t weight_of_properties() const;
};

// The drafts of JSON Schema.
enum class SchemaDraft : std::uint8_t { draft4, draft6, draft7, draft2019, draft2020 };

// The schemas of a document, and those that are made from them.
class SchemaNodes {
 public:
  // `source` starts all messages.
  explicit SchemaNodes(const std::string& source);

  NodeId root() const { return root_; }
  const SchemaNode& operator[](NodeId id) const { return nodes_[id]; }
  Automata& automata() { return automata_; }

  // Keywords and formats of the document that were ignored and may not be meant to be, each once.
  const std::vector<std::string>& ignored() const { return ignored_; }

  // Nodes that together are valid exactly where `id` is not.
  const std::vector<NodeId>& negation(NodeId id);
  // A node that is valid where `id` is not.
  NodeId inverse(NodeId id);
  NodeId add(SchemaNode node);
  NodeId all_of(std::vector<NodeId> nodes);
  // The node's conditions except those that name other schemas for the whole value.
  NodeId without_logic(NodeId id);
  NodeId forbidding(const std::string& property);
  NodeId requiring(const std::string& property);
  // Returns true if a schema has unevaluatedProperties or unevaluatedItems.
  bool has_unevaluated() const;
  NodeId never() const { return never_; }
  NodeId always() const { return always_; }

  // The types that a schema without a type has keywords for; all types if it has none, or a type or alternatives.
  JsonTypes types_meant(NodeId id) const;

  [[noreturn]] void fail(NodeId id, std::string_view reason) const;

 private:
  friend class SchemaReader;

  SchemaNode like(NodeId id, JsonTypes types = all_types) const;
  // Adds a node of this type that is like `id` only in its place in the document.
  NodeId opposite(NodeId id, JsonType type, const std::function<void(SchemaNode&)>& change);
  void negate_values(NodeId id, std::vector<NodeId>& result);
  void negate_arrays(NodeId id, std::vector<NodeId>& result);
  void negate_objects(NodeId id, std::vector<NodeId>& result);
  void negate_logic(NodeId id, std::vector<NodeId>& result);

  std::string source_;
  std::deque<SchemaNode> nodes_;  // references stay valid
  Automata automata_;
  NodeId never_, always_, root_ = 0;
  std::vector<std::string> ignored_;
  std::map<NodeId, std::vector<NodeId>> negations_;
  std::map<NodeId, NodeId> inverses_, without_logic_;
  std::unordered_map<std::vector<NodeId>, NodeId, HashOfNodes> conjunctions_;
  std::map<std::string, NodeId> forbidding_, requiring_;
};

}  // namespace minimind
