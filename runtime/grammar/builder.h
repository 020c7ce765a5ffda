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

// A builder of a Grammar. Its symbols and rules are valid for this builder only. All functions throw Error if the
// grammar grows over max_symbols.
class GrammarBuilder {
 public:
  using Sequence = std::vector<Grammar::Symbol>;
  using RuleId = std::uint32_t;

  static constexpr std::size_t max_symbols = std::size_t{1} << 20;
  static constexpr std::size_t max_repetitions = 100'000;

  // Returns these bytes, in order.
  Sequence literal(std::string_view bytes);

  // Returns one character of the set, which must not be empty.
  Sequence characters(const CodePoints& set);

  // Return a sequence, an alternative (of at least one), and `sequence` repeated from `min` to `max` times (without
  // limit if `max` is unset). Throw Error if max < min or either is over max_repetitions. Repetitions of the same next
  // to each other, or of each other, become one: x? x* is x*, because the readings of each text would be many.
  Sequence concatenate(const std::vector<Sequence>& parts);
  void append(Sequence& sequence, const Sequence& part);
  Sequence choice(const std::vector<Sequence>& alternatives);
  Sequence repeat(const Sequence& sequence, std::size_t min, std::optional<std::size_t> max);
  // Returns an equivalent single symbol, for cheap use in several places.
  Sequence group(const Sequence& sequence);
  Sequence optional(const Sequence& sequence) { return repeat(sequence, 0, 1); }

  // Declares a rule, which may be referred to before its single definition. `name` is its name in errors.
  RuleId declare(std::string name);
  void define(RuleId rule, const std::vector<Sequence>& alternatives);
  static Sequence reference(RuleId rule) { return {{Grammar::Symbol::Kind::rule, rule}}; }

  // Throws Error, naming the rule, if a rule is left recursive (can start with itself) or if it can never be finished.
  // Rules that `root` does not reach are not checked. All declared rules must be defined.
  Grammar build(RuleId root);

 private:
  struct Definition {
    std::string name;  // empty for internal rules
    std::vector<Sequence> alternatives;
  };

  // A rule that repeats a symbol from 0 to `max` times, without limit if that is unset.
  struct Repetition {
    Grammar::Symbol repeated;
    std::optional<std::size_t> max;
  };

  Sequence bytes(const ByteSet& set);
  void append_symbol(Sequence& sequence, Grammar::Symbol symbol);
  const Repetition* repetition(Grammar::Symbol symbol) const;
  Grammar::Symbol repeated(Grammar::Symbol symbol, std::optional<std::size_t> max);
  std::optional<Grammar::Symbol> without_empty(Grammar::Symbol symbol);
  RuleId made_up(const std::vector<Sequence>& alternatives);
  void charge(std::size_t symbols);
  std::vector<RuleId> reachable_from(RuleId root) const;
  Grammar flatten(const std::vector<RuleId>& kept, RuleId root) const;

  std::vector<Definition> rules_;
  std::vector<ByteSet> byte_sets_;
  std::unordered_map<ByteSet, std::uint32_t> byte_set_ids_;
  std::map<std::vector<Sequence>, RuleId> made_up_;         // by their alternatives: none is made twice
  std::map<Grammar::Symbol, RuleId> unlimited_;             // repetitions of a symbol
  std::map<Grammar::Symbol, std::vector<RuleId>> limited_;  // those from 0 to 1 time, to 2, ...
  std::unordered_map<RuleId, Repetition> repetitions_;
  std::size_t symbols_ = 0;
};

// Analyses of a grammar. Time and memory are proportional to its size.

// Sets Rule::nullable and Grammar::bytes_to_end, or returns the name of a rule that can never be finished: the first
// with a name. `names` [rules] are empty for rules without a name.
std::optional<std::string> measure_rules(Grammar& grammar, const std::vector<std::string>& names);

// Sets Rule::rank, or returns the name of a left-recursive rule. A rule R ::= x R with an x that may be empty is not
// left recursive: it derives R from R and nothing else.
std::optional<std::string> rank_rules(Grammar& grammar, const std::vector<std::string>& names);

// Sets Grammar::places. `limited` [rules] are those that repeat a symbol from 0 to some number of times and have two
// alternatives: the symbol and a rule of one repetition less, if any are left, and nothing.
void find_paths(Grammar& grammar, const std::vector<bool>& limited);

}  // namespace minimind
