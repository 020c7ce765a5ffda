#include "runtime/json_schema/text_grammar.h"

#include <fmt/core.h>

#include <map>
#include <utility>

#include "runtime/grammar/work.h"
#include "runtime/json_schema/automaton.h"
#include "runtime/json_schema/pattern.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

constexpr std::size_t most_text_steps = 20'000'000;

// A rule for each state: a character and the rule of the state that it leads to, or nothing.
Grammar grammar_of(const Automaton& automaton) {
  if (automaton.empty()) throw Error("no text matches");
  GrammarBuilder builder;
  // Many states take the same characters.
  std::map<std::vector<std::pair<char32_t, char32_t>>, GrammarBuilder::Sequence> sets;
  const auto characters = [&](const CodePoints& set) -> const GrammarBuilder::Sequence& {
    std::vector<std::pair<char32_t, char32_t>> key;
    for (const CodePoints::Range& range : set.ranges()) key.emplace_back(range.first, range.last);
    const auto [place, added] = sets.try_emplace(std::move(key));
    if (added) place->second = builder.characters(set);
    return place->second;
  };
  std::vector<GrammarBuilder::RuleId> rules;
  for (std::size_t state = 0; state < automaton.states(); ++state) rules.push_back(builder.declare("root"));
  for (Automaton::State state = 0; state < automaton.states(); ++state) {
    std::map<Automaton::State, CodePoints> by_target;
    for (auto [edge, end] = automaton.edges(state); edge != end; ++edge) {
      by_target[edge->to].add(edge->first, edge->last);
    }
    std::vector<GrammarBuilder::Sequence> alternatives;
    for (const auto& [target, set] : by_target) {
      spend(1 + set.ranges().size());
      alternatives.push_back(builder.concatenate({characters(set), GrammarBuilder::reference(rules[target])}));
    }
    if (automaton.accepts_at(state)) alternatives.emplace_back();
    builder.define(rules[state], alternatives);
  }
  return builder.build(rules.front());
}

template <class MakeAutomaton>
Grammar made(const std::string& source, MakeAutomaton make) {
  const WorkLimit limit(most_text_steps, source);
  try {
    return grammar_of(make());
  } catch (const TooMuchWork&) {
    throw;  // has the source
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", source, error.what()));
  }
}

}  // namespace

Grammar pattern_grammar(std::string_view pattern, const std::string& source) {
  return made(source, [&] { return pattern_automaton(pattern, Matching::whole); });
}

Grammar choice_grammar(const std::vector<std::string>& texts, const std::string& source) {
  return made(source, [&] {
    std::vector<std::u32string> characters;
    for (const std::string& text : texts) {
      spend(1 + text.size());
      characters.push_back(code_points_of(text));
    }
    return Automaton::of_texts(std::move(characters));
  });
}

}  // namespace minimind
