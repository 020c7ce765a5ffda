#include "runtime/grammar/analysis.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>

namespace minimind {
namespace {

using Kind = Grammar::Symbol::Kind;

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

// Of each rule the length of the shortest text that it derives, nothing where there is none: Knuth's generalisation of
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

// For each rule those that it can begin with.
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

// A named rule on a cycle, given rules each of which is begun with by another of them.
std::string name_on_cycle(const std::vector<std::vector<std::uint32_t>>& firsts, const std::vector<bool>& left,
                          const std::vector<std::string>& names) {
  std::vector<std::uint32_t> caller(firsts.size());
  std::uint32_t rule = 0;
  for (std::uint32_t from = 0; from < firsts.size(); ++from) {
    if (!left[from]) continue;
    for (const std::uint32_t to : firsts[from]) caller[to] = from;
    rule = from;
  }
  for (std::size_t i = 0; i < firsts.size(); ++i) rule = caller[rule];  // now it is on the cycle
  for (std::size_t i = 0; i < firsts.size() && names[rule].empty(); ++i) rule = caller[rule];
  return names[rule];
}

}  // namespace

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

}  // namespace minimind
