#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/text/code_points.h"

namespace minimind {

// A deterministic finite automaton over characters: a regular language. Every state leads to an accepting one, so that
// a language without strings has no states. State 0 is the start.
//
// Functions that make an automaton throw Error if it would have over most_states states.
class Automaton {
 public:
  struct Edge {
    char32_t first, last;  // both included
    std::uint32_t to;
  };
  using State = std::uint32_t;

  static constexpr std::size_t most_states = 100'000;

  // An automaton under construction: edges of one state must not overlap.
  struct Draft {
    std::vector<std::vector<Edge>> edges;  // [states]
    std::vector<bool> accepting;           // [states]

    State add(bool accepts);
  };

  // The language without strings.
  Automaton() = default;
  // Drops the states that the start does not reach and those that lead to no accepting one.
  explicit Automaton(const Draft& draft);

  static Automaton everything();
  static Automaton of_texts(std::vector<std::u32string> texts);
  static Automaton of_lengths(std::size_t min, std::optional<std::size_t> max);

  bool empty() const { return accepting_.empty(); }
  std::size_t states() const { return accepting_.size(); }
  bool accepts_at(State state) const { return accepting_[state]; }
  // In order of characters.
  std::pair<const Edge*, const Edge*> edges(State state) const {
    return {edges_.data() + begins_[state], edges_.data() + begins_[state + 1]};
  }
  std::optional<State> next(State state, char32_t character) const;
  bool accepts(std::u32string_view text) const;

  // Returns true if the language is finite.
  bool is_finite() const;
  // Returns the strings if there are at most `most`.
  std::optional<std::vector<std::u32string>> texts(std::size_t most) const;

  // Returns, for each state, the fewest bytes inside a JSON string that lead to an accepting one.
  std::vector<std::uint64_t> bytes_to_accept() const;

  // Returns, for each state, up to how many of these characters it takes every text, or any_number.
  std::vector<std::uint32_t> characters_taken(const CodePoints& characters) const;
  static constexpr std::uint32_t any_number = ~0u;

  Automaton complement() const;
  friend Automaton operator&(const Automaton& a, const Automaton& b);
  friend Automaton operator|(const Automaton& a, const Automaton& b);
  Automaton without(const Automaton& other) const { return *this & other.complement(); }

 private:
  template <class Accepts>
  static Automaton product(const Automaton& a, const Automaton& b, bool both_needed, Accepts accepts);

  std::vector<std::uint32_t> begins_{0};  // [states + 1], in edges_
  std::vector<Edge> edges_;
  std::vector<bool> accepting_;  // [states]
};

// Returns the fewest bytes of a JSON string that spell a character of the range.
std::uint64_t json_bytes_of(char32_t first, char32_t last);

}  // namespace minimind
