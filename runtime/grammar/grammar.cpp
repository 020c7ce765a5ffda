#include "runtime/grammar/grammar.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "runtime/grammar/work.h"
#include "weights/base/cancel.h"
#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

using Kind = Grammar::Symbol::Kind;

// Of repetitions of a repetition that become one: more of them would make too many rules.
constexpr std::size_t most_multiplied = 10'000;

// Equivalence classes of bytes: bytes in the same sets share a class.
void classify_bytes(Grammar& grammar) {
  std::size_t classes = 1;
  for (const ByteSet& set : grammar.byte_sets) {
    std::array<int, 256> id_of_members;
    id_of_members.fill(-1);
    std::array<std::size_t, 256> left{};
    for (const std::uint8_t id : grammar.byte_class) ++left[id];
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (set.test(byte)) --left[grammar.byte_class[byte]];
    }
    for (std::size_t byte = 0; byte < 256; ++byte) {
      std::uint8_t& id = grammar.byte_class[byte];
      if (!set.test(byte) || left[id] == 0) continue;
      if (id_of_members[id] < 0) id_of_members[id] = static_cast<int>(classes++);
      id = static_cast<std::uint8_t>(id_of_members[id]);
    }
  }
  grammar.class_bytes.resize(classes);
  for (std::size_t byte = 0; byte < 256; ++byte) {
    grammar.class_bytes[grammar.byte_class[byte]] = static_cast<std::uint8_t>(byte);
  }
}

// Time and memory of the analyses of a grammar are proportional to its size.

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  return std::min(a + b, Grammar::longest_text);
}

template <class Use>
void for_each_alternative(const Grammar& grammar, Use use) {
  for (std::uint32_t rule = 0; rule < grammar.rules.size(); ++rule) {
    const Grammar::Rule& its = grammar.rules[rule];
    for (std::uint32_t i = 0; i < its.alternatives; ++i) {
      use(rule, its.first_alternative + i, &grammar.symbols[grammar.alternatives[its.first_alternative + i]]);
    }
  }
}

// Computes the length of the shortest text of each rule, infinite if there is none: Knuth's generalisation of
// Dijkstra's algorithm.
std::vector<std::optional<std::uint64_t>> shortest_texts(const Grammar& grammar) {
  std::vector<std::optional<std::uint64_t>> shortest(grammar.rules.size());
  std::vector<std::size_t> missing(grammar.alternatives.size());
  std::vector<std::uint64_t> length(grammar.alternatives.size());
  std::vector<std::uint32_t> rule_of(grammar.alternatives.size());
  std::vector<std::vector<std::uint32_t>> used_by(grammar.rules.size());
  using Entry = std::pair<std::uint64_t, std::uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> known;
  for_each_alternative(grammar, [&](std::uint32_t rule, std::uint32_t alternative, const Grammar::Symbol* symbol) {
    rule_of[alternative] = rule;
    for (; symbol->kind != Kind::end; ++symbol) {
      if (symbol->kind == Kind::bytes) {
        length[alternative] = sum(length[alternative], 1);
      } else {
        used_by[symbol->index].push_back(alternative);
        ++missing[alternative];
      }
    }
    if (missing[alternative] == 0) known.emplace(length[alternative], rule);
  });
  while (!known.empty()) {
    const auto [its_length, rule] = known.top();
    known.pop();
    if (shortest[rule]) continue;
    shortest[rule] = its_length;
    for (const std::uint32_t alternative : used_by[rule]) {
      length[alternative] = sum(length[alternative], its_length);
      if (--missing[alternative] == 0) known.emplace(length[alternative], rule_of[alternative]);
    }
  }
  return shortest;
}

// Returns for each rule the rules that can start it.
std::vector<std::vector<std::uint32_t>> first_rules(const Grammar& grammar) {
  std::vector<std::vector<std::uint32_t>> firsts(grammar.rules.size());
  for_each_alternative(grammar, [&](std::uint32_t rule, std::uint32_t, const Grammar::Symbol* const begin) {
    for (const Grammar::Symbol* symbol = begin; symbol->kind == Kind::rule; ++symbol) {
      const bool repeats = symbol->index == rule && symbol != begin && symbol[1].kind == Kind::end;
      if (!repeats) firsts[rule].push_back(symbol->index);
      if (!grammar.rules[symbol->index].nullable) break;
    }
  });
  return firsts;
}

// Returns a named rule on a cycle, given rules each of which starts another.
std::string name_on_cycle(const std::vector<std::vector<std::uint32_t>>& firsts, const std::vector<bool>& left,
                          const std::vector<std::string>& names) {
  std::vector<std::uint32_t> caller(firsts.size());
  std::uint32_t rule = 0;
  for (std::uint32_t from = 0; from < firsts.size(); ++from) {
    if (!left[from]) continue;
    for (const std::uint32_t to : firsts[from]) caller[to] = from;
    rule = from;
  }
  for (std::size_t i = 0; i < firsts.size(); ++i) rule = caller[rule];  // the rule is then on the cycle
  for (std::size_t i = 0; i < firsts.size() && names[rule].empty(); ++i) rule = caller[rule];
  return names[rule];
}

// Sets Rule::nullable and Grammar::bytes_to_end, or returns the name of a rule that can never be finished: the first
// with a name. `names` [rules] are empty for rules without a name.
std::optional<std::string> measure_rules(Grammar& grammar, const std::vector<std::string>& names) {
  const std::vector<std::optional<std::uint64_t>> shortest = shortest_texts(grammar);
  for (std::size_t rule = 0; rule < shortest.size(); ++rule) {
    if (!shortest[rule] && !names[rule].empty()) return names[rule];
    grammar.rules[rule].nullable = shortest[rule] == std::uint64_t{0};
  }
  grammar.bytes_to_end.assign(grammar.symbols.size(), 0);
  for (std::size_t i = grammar.symbols.size(); i-- > 0;) {
    const Grammar::Symbol symbol = grammar.symbols[i];
    if (symbol.kind == Kind::end || symbol.kind == Kind::accept) continue;
    const std::uint64_t its = symbol.kind == Kind::bytes ? 1 : shortest[symbol.index].value_or(Grammar::longest_text);
    grammar.bytes_to_end[i] = sum(its, grammar.bytes_to_end[i + 1]);
  }
  return std::nullopt;
}

// Sets Rule::rank, or returns the name of a left-recursive rule. A rule R ::= x R with an x that may be empty is not
// left recursive: it derives R from R and nothing else.
std::optional<std::string> rank_rules(Grammar& grammar, const std::vector<std::string>& names) {
  const std::vector<std::vector<std::uint32_t>> firsts = first_rules(grammar);
  std::vector<std::size_t> callers(firsts.size());
  for (const std::vector<std::uint32_t>& called : firsts) {
    for (const std::uint32_t rule : called) ++callers[rule];
  }
  std::vector<std::uint32_t> ranked;
  for (std::uint32_t rule = 0; rule < firsts.size(); ++rule) {
    if (callers[rule] == 0) ranked.push_back(rule);
  }
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    grammar.rules[ranked[i]].rank = static_cast<std::uint32_t>(i);
    for (const std::uint32_t rule : firsts[ranked[i]]) {
      if (--callers[rule] == 0) ranked.push_back(rule);
    }
  }
  if (ranked.size() == firsts.size()) return std::nullopt;
  std::vector<bool> left(firsts.size(), true);
  for (const std::uint32_t rule : ranked) left[rule] = false;
  return name_on_cycle(firsts, left, names);
}

constexpr std::uint32_t shortest_path = 16;  // that is worth the work of comparing positions

// Returns a position that allows nothing that `at` does not, in the same frame; 0 if none is known. `tried` [rules] are
// the alternatives that can be no such position any more.
std::uint32_t narrower_position(const Grammar& grammar, const std::vector<bool>& limited,
                                const std::vector<bool>& taken, std::vector<std::uint32_t>& tried, std::uint32_t at) {
  const Grammar::Symbol symbol = grammar.symbols[at];
  if (symbol.kind != Kind::rule) return 0;
  const Grammar::Rule& rule = grammar.rules[symbol.index];
  const bool last = grammar.symbols[at + 1].kind == Kind::end;
  // x{0,4} after x{0,5}.
  if (last && limited[symbol.index]) {
    const std::uint32_t next = grammar.alternatives[rule.first_alternative] + 1;
    return taken[next] ? 0 : next;
  }
  for (std::uint32_t& i = tried[symbol.index]; last && i < rule.alternatives; ++i) {
    const std::uint32_t first = grammar.alternatives[rule.first_alternative + i];
    if (grammar.symbols[first].kind == Kind::rule && !taken[first]) return first;
  }
  return rule.nullable && !taken[at + 1] ? at + 1 : 0;
}

// Sets Grammar::places. `limited` [rules] are those that repeat a symbol from 0 to some number of times and have two
// alternatives: the symbol and a rule of one repetition less, if any are left, and nothing.
void find_paths(Grammar& grammar, const std::vector<bool>& limited) {
  const auto count = static_cast<std::uint32_t>(grammar.symbols.size());
  std::vector<bool> taken(count);
  taken[0] = true;
  std::vector<std::uint32_t> next(count), tried(grammar.rules.size());
  for (std::uint32_t at = 0; at < count; ++at) {
    next[at] = narrower_position(grammar, limited, taken, tried, at);
    if (next[at] != 0) taken[next[at]] = true;
  }
  std::vector<Grammar::Place> places(count);
  std::uint32_t paths = 0, longest = 0;
  for (std::uint32_t start = 0; start < count; ++start) {
    if (next[start] == 0 || (taken[start] && start != 0)) continue;
    ++paths;
    std::uint32_t length = 0;
    for (std::uint32_t at = start;; at = next[at]) {
      places[at] = {paths, length++};
      if (next[at] == 0) break;
    }
    longest = std::max(longest, length);
  }
  if (longest >= shortest_path) grammar.places = std::move(places);
}

}  // namespace

void GrammarBuilder::charge(std::size_t symbols) {
  spend(symbols);
  if (symbols > max_symbols - symbols_) {
    throw Error(
        fmt::format("the grammar is too large, expected at most {} symbols with repetitions expanded; "
                    "repeat less",
                    max_symbols));
  }
  symbols_ += symbols;
}

GrammarBuilder::Sequence GrammarBuilder::bytes(const ByteSet& set) {
  charge(1);
  const auto [place, is_new] = byte_set_ids_.try_emplace(set, static_cast<std::uint32_t>(byte_sets_.size()));
  if (is_new) byte_sets_.push_back(set);
  return {{Kind::bytes, place->second}};
}

GrammarBuilder::Sequence GrammarBuilder::literal(std::string_view text) {
  Sequence result;
  for (const char byte : text) {
    const Sequence symbol = bytes(ByteSet().set(static_cast<std::uint8_t>(byte)));
    result.push_back(symbol.front());
  }
  return result;
}

GrammarBuilder::Sequence GrammarBuilder::characters(const CodePoints& set) {
  const std::vector<std::vector<ByteSet>> sequences = utf8_sequences(set);
  std::vector<Sequence> alternatives;
  if (sequences.size() == 1) {
    for (const ByteSet& byte_set : sequences.front()) alternatives.push_back(bytes(byte_set));
    return concatenate(alternatives);
  }
  for (const std::vector<ByteSet>& sequence : sequences) {
    std::vector<Sequence> parts;
    for (const ByteSet& byte_set : sequence) parts.push_back(bytes(byte_set));
    alternatives.push_back(concatenate(parts));
  }
  return reference(made_up(alternatives));
}

GrammarBuilder::Sequence GrammarBuilder::concatenate(const std::vector<Sequence>& parts) {
  Sequence result;
  for (const Sequence& part : parts) append(result, part);
  return result;
}

void GrammarBuilder::append(Sequence& sequence, const Sequence& part) {
  for (const Grammar::Symbol symbol : part) append_symbol(sequence, symbol);
}

// A symbol after repetitions of it goes before them, so that they meet the next ones.
void GrammarBuilder::append_symbol(Sequence& sequence, Grammar::Symbol symbol) {
  const Repetition* const last = sequence.empty() ? nullptr : repetition(sequence.back());
  if (last != nullptr && last->repeated == symbol) {
    sequence.insert(sequence.end() - 1, symbol);
    return;
  }
  const Repetition* const next = repetition(symbol);
  const bool alike = last != nullptr && next != nullptr && last->repeated == next->repeated;
  if (!alike) {
    sequence.push_back(symbol);
  } else if (!last->max || !next->max) {
    sequence.back() = repeated(last->repeated, std::nullopt);
  } else if (*last->max + *next->max <= max_repetitions) {
    sequence.back() = repeated(last->repeated, *last->max + *next->max);
  } else {
    sequence.push_back(symbol);
  }
}

const GrammarBuilder::Repetition* GrammarBuilder::repetition(Grammar::Symbol symbol) const {
  if (symbol.kind != Kind::rule) return nullptr;
  const auto found = repetitions_.find(symbol.index);
  return found == repetitions_.end() ? nullptr : &found->second;
}

GrammarBuilder::Sequence GrammarBuilder::choice(const std::vector<Sequence>& alternatives) {
  return alternatives.size() == 1 ? alternatives.front() : reference(made_up(alternatives));
}

GrammarBuilder::Sequence GrammarBuilder::group(const Sequence& sequence) {
  return sequence.size() == 1 ? sequence : reference(made_up({sequence}));
}

// x{2,} is x x R with R ::= x R | nothing; x{2,4} is x x R2 with R2 ::= x R1 | nothing, R1 ::= x | nothing.
GrammarBuilder::Sequence GrammarBuilder::repeat(const Sequence& sequence, std::size_t min,
                                                std::optional<std::size_t> max) {
  if (max && *max < min) throw Error(fmt::format("a repetition of at least {} and at most {}", min, *max));
  if (std::max(min, max.value_or(0)) > max_repetitions) {
    throw Error(
        fmt::format("a repetition of {}, expected at most {}", std::max(min, max.value_or(0)), max_repetitions));
  }
  if (sequence.empty() || max == std::size_t{0}) return {};
  Grammar::Symbol once = group(sequence).front();
  if (const Repetition* const inner = repetition(once)) {
    const Repetition of = *inner;
    if (!max || !of.max) return {repeated(of.repeated, std::nullopt)};
    if (*max == 1 || *of.max <= most_multiplied / *max) {
      return {repeated(of.repeated, *of.max * *max)};
    }
  }
  if (const auto rest = without_empty(once)) {
    once = *rest;
    min = 0;
  }
  charge(min);
  Sequence result(min, once);
  if (!max) {
    result.push_back(repeated(once, std::nullopt));
  } else if (*max > min) {
    result.push_back(repeated(once, *max - min));
  }
  return result;
}

// Returns the same without the empty text, if it has that and a few repetitions only: (x? y?) is (x y? | y). Where it
// is repeated, the empty text would make many readings of each text.
std::optional<Grammar::Symbol> GrammarBuilder::without_empty(Grammar::Symbol symbol) {
  constexpr std::size_t most_parts = 8, most_alternatives = 64;
  const bool made = symbol.kind == Kind::rule && rules_[symbol.index].name.empty();
  if (!made || repetition(symbol) != nullptr) return std::nullopt;
  bool had_empty = false;
  std::vector<Sequence> result;
  const std::vector<Sequence> alternatives = rules_[symbol.index].alternatives;
  for (const Sequence& alternative : alternatives) {
    const bool may_be_empty = std::all_of(alternative.begin(), alternative.end(),
                                          [&](Grammar::Symbol part) { return repetition(part) != nullptr; });
    had_empty = had_empty || may_be_empty;
    if (!may_be_empty) result.push_back(alternative);
    if (may_be_empty && alternative.size() > most_parts) return std::nullopt;
    for (std::size_t i = 0; may_be_empty && i < alternative.size(); ++i) {
      const Repetition part = *repetition(alternative[i]);
      Sequence rest{part.repeated};
      if (!part.max) append_symbol(rest, alternative[i]);
      if (part.max && *part.max > 1) append_symbol(rest, repeated(part.repeated, *part.max - 1));
      append(rest, Sequence(alternative.begin() + static_cast<std::ptrdiff_t>(i) + 1, alternative.end()));
      result.push_back(std::move(rest));
    }
    if (result.size() > most_alternatives) return std::nullopt;
  }
  if (!had_empty || result.empty()) return std::nullopt;
  return group(choice(result)).front();
}

Grammar::Symbol GrammarBuilder::repeated(Grammar::Symbol symbol, std::optional<std::size_t> max) {
  if (!max) {
    const auto known = unlimited_.find(symbol);
    if (known != unlimited_.end()) return reference(known->second).front();
    const RuleId rest = declare("");
    define(rest, {{symbol, reference(rest).front()}, {}});
    unlimited_.emplace(symbol, rest);
    repetitions_.emplace(rest, Repetition{symbol, std::nullopt});
    return reference(rest).front();
  }
  std::vector<RuleId>& chain = limited_[symbol];
  while (chain.size() < *max) {
    Sequence one_more{symbol};
    if (!chain.empty()) one_more.push_back(reference(chain.back()).front());
    chain.push_back(made_up({std::move(one_more), {}}));
    repetitions_.emplace(chain.back(), Repetition{symbol, chain.size()});
  }
  return reference(chain[*max - 1]).front();
}

GrammarBuilder::RuleId GrammarBuilder::declare(std::string name) {
  charge(1);
  rules_.push_back({std::move(name), {}});
  return static_cast<RuleId>(rules_.size() - 1);
}

void GrammarBuilder::define(RuleId rule, const std::vector<Sequence>& alternatives) {
  for (const Sequence& alternative : alternatives) charge(alternative.size() + 1);
  rules_[rule].alternatives = alternatives;
}

GrammarBuilder::RuleId GrammarBuilder::made_up(const std::vector<Sequence>& alternatives) {
  const auto known = made_up_.find(alternatives);
  if (known != made_up_.end()) return known->second;
  const RuleId rule = declare("");
  define(rule, alternatives);
  made_up_.emplace(alternatives, rule);
  return rule;
}

std::vector<GrammarBuilder::RuleId> GrammarBuilder::reachable_from(RuleId root) const {
  std::vector<bool> seen(rules_.size());
  std::vector<RuleId> reached{root};
  seen[root] = true;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const Sequence& alternative : rules_[reached[i]].alternatives) {
      for (const Grammar::Symbol& symbol : alternative) {
        if (symbol.kind != Kind::rule || seen[symbol.index]) continue;
        seen[symbol.index] = true;
        reached.push_back(symbol.index);
      }
    }
  }
  return reached;
}

Grammar GrammarBuilder::flatten(const std::vector<RuleId>& kept, RuleId root) const {
  std::vector<std::uint32_t> new_ids(rules_.size());
  for (std::size_t i = 0; i < kept.size(); ++i) new_ids[kept[i]] = static_cast<std::uint32_t>(i);
  Grammar grammar;
  grammar.root = new_ids[root];
  grammar.byte_sets = byte_sets_;
  for (const RuleId id : kept) {
    Grammar::Rule rule;
    rule.first_alternative = static_cast<std::uint32_t>(grammar.alternatives.size());
    rule.alternatives = static_cast<std::uint32_t>(rules_[id].alternatives.size());
    grammar.rules.push_back(rule);
    for (const Sequence& alternative : rules_[id].alternatives) {
      grammar.alternatives.push_back(static_cast<std::uint32_t>(grammar.symbols.size()));
      for (Grammar::Symbol symbol : alternative) {
        if (symbol.kind == Kind::rule) symbol.index = new_ids[symbol.index];
        grammar.symbols.push_back(symbol);
      }
      grammar.symbols.push_back({Kind::end});
    }
  }
  grammar.symbols.push_back({Kind::accept});
  classify_bytes(grammar);
  return grammar;
}

Grammar GrammarBuilder::build(RuleId root) {
  check_cancelled();
  const std::vector<RuleId> kept = reachable_from(root);
  Grammar grammar = flatten(kept, root);
  std::vector<std::string> names;
  for (const RuleId rule : kept) names.push_back(rules_[rule].name);
  if (const auto endless = measure_rules(grammar, names)) {
    throw Error(fmt::format("rule {} can never be finished: no text completes it", quote(*endless)));
  }
  check_cancelled();
  if (const auto recursive = rank_rules(grammar, names)) {
    throw Error(
        fmt::format("rule {} is left recursive: it can start with itself before it has matched anything; "
                    "write it with * or + or the recursion at the end",
                    quote(*recursive)));
  }
  std::vector<bool> limited;
  for (const RuleId rule : kept) {
    const auto found = repetitions_.find(rule);
    limited.push_back(found != repetitions_.end() && found->second.max);
  }
  check_cancelled();
  find_paths(grammar, limited);
  return grammar;
}

}  // namespace minimind
