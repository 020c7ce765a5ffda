#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/grammar/code_points.h"
#include "runtime/grammar/grammar.h"

namespace minimind {

// Puts a Grammar together. What its functions return is good for this builder only. All of them throw Error when the
// grammar grows over max_symbols.
class GrammarBuilder {
 public:
  using Sequence = std::vector<Grammar::Symbol>;
  using RuleId = std::uint32_t;

  static constexpr std::size_t max_symbols = std::size_t{1} << 20;
  static constexpr std::size_t max_repetitions = 100'000;

  // These bytes, in order.
  Sequence literal(std::string_view bytes);

  // One character of the set, which is not empty.
  Sequence characters(const CodePoints& set);

  // One after another, one of several (at least one), and `sequence` from `min` to `max` times (without limit when
  // there is none). Throws Error when max < min or either is over max_repetitions.
  static Sequence concatenate(const std::vector<Sequence>& parts);
  Sequence choice(const std::vector<Sequence>& alternatives);
  Sequence repeat(const Sequence& sequence, std::size_t min, std::optional<std::size_t> max);
  // The same as one symbol, so that it can be used in several places at little cost.
  Sequence group(const Sequence& sequence);
  Sequence optional(const Sequence& sequence) { return repeat(sequence, 0, 1); }

  // A rule that can be referred to before it is defined, once. `name` is what errors call it.
  RuleId declare(std::string name);
  void define(RuleId rule, const std::vector<Sequence>& alternatives);
  static Sequence reference(RuleId rule) { return {{Grammar::Symbol::Kind::rule, rule}}; }

  // Throws Error, naming the rule, when one is left recursive (can begin with itself) or when no text at all can be
  // finished from it. Rules that `root` does not reach are left out of the checks. All declared rules are defined.
  Grammar build(RuleId root);

 private:
  struct Definition {
    std::string name;  // empty for those made up here
    std::vector<Sequence> alternatives;
  };

  Sequence bytes(const ByteSet& set);
  RuleId made_up(std::vector<Sequence> alternatives);
  void charge(std::size_t symbols);
  std::vector<RuleId> reachable_from(RuleId root) const;
  Grammar flatten(const std::vector<RuleId>& kept, RuleId root) const;

  std::vector<Definition> rules_;
  std::vector<ByteSet> byte_sets_;
  std::unordered_map<ByteSet, std::uint32_t> byte_set_ids_;
  std::map<std::vector<std::pair<char32_t, char32_t>>, RuleId> character_rules_;
  std::size_t symbols_ = 0;
};

// What GrammarBuilder finds out about a grammar. All of it takes time and memory in proportion to its size.

// Sets Rule::nullable and Grammar::bytes_to_end, or returns the name of a rule from which no text can ever be derived:
// the first that has a name. `names` [rules] are empty for rules that have none.
std::optional<std::string> measure_rules(Grammar& grammar, const std::vector<std::string>& names);

// Sets Rule::rank, or returns the name of a rule that is left recursive. A rule of the form R ::= x R with an x that
// may be empty is not: that derives R from R and nothing else.
std::optional<std::string> rank_rules(Grammar& grammar, const std::vector<std::string>& names);

}  // namespace minimind
