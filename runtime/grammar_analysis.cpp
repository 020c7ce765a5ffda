#include "runtime/grammar_analysis.h"

#include <algorithm>

namespace minimind {
namespace {

using Kind = Grammar::Symbol::Kind;

template <class Use>
void for_each_alternative(const Grammar& grammar, Use use) {
  for (std::uint32_t rule = 0; rule < grammar.rules.size(); ++rule) {
    const Grammar::Rule& its = grammar.rules[rule];
    for (std::uint32_t i = 0; i < its.alternatives; ++i) {
      use(rule, its.first_alternative + i, &grammar.symbols[grammar.alternatives[its.first_alternative + i]]);
    }
  }
}

// The rules with an alternative whose rules are all among them, and which has no bytes unless `bytes_count`.
std::vector<bool> rules_that_derive(const Grammar& grammar, bool bytes_count) {
  std::vector<std::size_t> missing(grammar.alternatives.size());
  std::vector<std::uint32_t> rule_of(grammar.alternatives.size());
  std::vector<std::vector<std::uint32_t>> used_by(grammar.rules.size());
  std::vector<bool> derives(grammar.rules.size());
  std::vector<std::uint32_t> found;
  const auto complete = [&](std::uint32_t alternative) {
    const std::uint32_t rule = rule_of[alternative];
    if (derives[rule]) return;
    derives[rule] = true;
    found.push_back(rule);
  };
  for_each_alternative(grammar, [&](std::uint32_t rule, std::uint32_t alternative, const Grammar::Symbol* symbol) {
    rule_of[alternative] = rule;
    for (; symbol->kind != Kind::end; ++symbol) {
      if (symbol->kind == Kind::rule) used_by[symbol->index].push_back(alternative);
      if (symbol->kind == Kind::rule || !bytes_count) ++missing[alternative];
    }
    if (missing[alternative] == 0) complete(alternative);
  });
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const std::uint32_t alternative : used_by[found[i]]) {
      if (--missing[alternative] == 0) complete(alternative);
    }
  }
  return derives;
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

void find_nullable_rules(Grammar& grammar) {
  const std::vector<bool> nullable = rules_that_derive(grammar, false);
  for (std::size_t rule = 0; rule < nullable.size(); ++rule) grammar.rules[rule].nullable = nullable[rule];
}

std::optional<std::string> find_endless_rule(const Grammar& grammar, const std::vector<std::string>& names) {
  const std::vector<bool> ends = rules_that_derive(grammar, true);
  for (std::size_t rule = 0; rule < ends.size(); ++rule) {
    if (!ends[rule] && !names[rule].empty()) return names[rule];
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
