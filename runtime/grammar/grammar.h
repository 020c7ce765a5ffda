#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/grammar/token_trie.h"
#include "runtime/text/code_points.h"

namespace minimind {

// What a byte means for names and items that must not be repeated, wherever the reading of a text does not matter for
// it. A name that its object has already is never allowed.
enum class JsonEvent : std::uint8_t {
  none,
  object_opens,
  object_closes,
  name_opens,
  name_closes,
  array_opens,
  item_ends,
  array_closes,
};

// Rules of a grammar that are made when a text first needs them, because together they would be too many. They are
// numbered from 0 in the order in which they are first mentioned.
class GrammarRules {
 public:
  // All texts of a kind with at most `characters` characters, after which the shortest rest of the whole text is longer
  // by at most `bytes`.
  struct TextRun {
    static constexpr std::uint16_t any = 0xFFFF;  // any number of characters
    std::uint16_t characters = 0;
    std::uint16_t most = any;  // characters of a text of the kind, but for those that start as no other of the rule
    std::uint32_t bytes = 0;
  };
  struct Symbol {
    bool is_rule = false;
    std::uint32_t rule = 0;
    ByteSet bytes;
    JsonEvent event = JsonEvent::none;  // of each of the bytes
    bool distinct = false;              // the item that ends here must differ from those before it
    // If first in an alternative: the texts of each kind all of which the rule takes.
    std::array<TextRun, text_kinds> runs{};
  };
  using Sequence = std::vector<Symbol>;

  struct Facts {
    bool nullable = false;           // derives the empty text
    std::uint32_t rank = 0;          // more than that of every rule that can start with this one
    std::uint64_t bytes_to_end = 0;  // of its shortest text
  };

  virtual ~GrammarRules() = default;
  virtual std::uint32_t root() = 0;
  virtual Facts facts(std::uint32_t rule) = 0;
  // Throws Error if the rule cannot be made.
  virtual std::vector<Sequence> alternatives(std::uint32_t rule) = 0;

  struct Rest {
    std::uint32_t rule = 0;
    std::size_t bytes = 0;  // before it
  };
  // Returns the rule of what is left of a string after as many whole characters at the start of `bytes` as are easily
  // followed, so that none of the rules between has to be made.
  virtual Rest skip(std::uint32_t rule, std::string_view) { return {rule, 0}; }
};

// What the rules of several texts are made from. Any number of threads may use it.
class GrammarRulesSource {
 public:
  virtual ~GrammarRulesSource() = default;
  virtual std::unique_ptr<GrammarRules> start() const = 0;
};

// A context-free grammar over the bytes of UTF-8, made by GrammarBuilder. Immutable: any number of GrammarStates, in
// any number of threads, may use it.
//
// Each rule has alternatives, each a sequence of symbols. Bytes, not characters, are the alphabet, so that a token may
// end inside a character: a byte fits if some completion of the character does.
struct Grammar {
  struct Symbol {
    enum class Kind : std::uint8_t {
      bytes,   // one byte of byte_sets[index]
      rule,    // a text of rules[index]
      end,     // of an alternative
      accept,  // of the text; the last of `symbols`
    };
    Kind kind;
    std::uint32_t index = 0;

    auto operator<=>(const Symbol&) const = default;
  };

  struct Rule {
    std::uint32_t first_alternative = 0;
    std::uint32_t alternatives = 0;
    bool nullable = false;   // derives the empty text
    std::uint32_t rank = 0;  // more than that of every rule that can start with this one: there is no left recursion
  };

  // The limit of text lengths, in bytes.
  static constexpr std::uint64_t longest_text = std::uint64_t{1} << 40;

  std::vector<Symbol> symbols;              // the alternatives, each closed by `end`; then `accept`
  std::vector<std::uint64_t> bytes_to_end;  // [symbols], of the shortest text from there to the end of the alternative
  std::vector<std::uint32_t> alternatives;  // the start of each in `symbols`
  std::vector<Rule> rules;
  std::uint32_t root = 0;
  std::vector<ByteSet> byte_sets;

  // Paths of positions: what may follow one may follow all before it on its path, in equal frames. Empty if all paths
  // are short. A grammar of many optional parts has long ones, and states would be as long without them.
  struct Place {
    std::uint32_t path = 0;   // 0: none
    std::uint32_t place = 0;  // on the path
  };
  std::vector<Place> places;  // [symbols]

  // Bytes that every set treats alike share a class; class_bytes has one byte of each class.
  std::array<std::uint8_t, 256> byte_class{};
  std::vector<std::uint8_t> class_bytes;

  // If set, each GrammarState makes the rules that its text needs, and all of the above is empty.
  std::shared_ptr<const GrammarRulesSource> rules_source;
};

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

}  // namespace minimind
