#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "runtime/grammar/gbnf.h"
#include "runtime/grammar/state.h"
#include "tests/support/cases.h"

namespace minimind {
namespace {

// Random grammars versus a naive matcher: the positions in the text where each part can end if it starts at `at`.
struct Part {
  enum Kind { letter, sequence, choice, repetition, rule } kind = letter;
  char character = 'a';
  std::vector<Part> parts;
  int min = 0, max = 0;  // max < 0: without limit
  std::size_t index = 0;
};

using Ends = std::set<std::size_t>;

struct RandomGrammar {
  std::vector<Part> rules;
  std::mt19937 random;
  bool wide;  // of many optional parts, whose positions are compared

  RandomGrammar(unsigned seed, bool is_wide) : random(seed), wide(is_wide) {
    rules.resize(3);
    // A rule refers to later ones, so that none is recursive; recursion has separate tests.
    for (std::size_t i = rules.size(); i-- > 0;) rules[i] = part(wide ? 2 : 3, i);
  }

  int below(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

  Part part(int depth, std::size_t rule) {
    Part made;
    const int kind = below(depth > 0 ? 10 : 2);
    if (kind < 2) {
      made.character = static_cast<char>('a' + below(2));
    } else if (kind < 5) {
      made.kind = Part::sequence;
      const bool optional = wide && below(2);
      for (int i = optional ? 20 : below(4); i-- > 0;) {
        Part next = part(depth - 1, rule);
        const bool always = below(12) == 0;
        if (optional && !always) next = Part{Part::repetition, 0, {std::move(next)}, 0, 1 + below(2)};
        made.parts.push_back(std::move(next));
      }
    } else if (kind < 7) {
      made.kind = Part::choice;
      for (int i = 1 + below(3); i-- > 0;) made.parts.push_back(part(depth - 1, rule));
    } else if (kind < 9 || rule + 1 >= rules.size()) {
      made.kind = Part::repetition;
      made.parts.push_back(part(depth - 1, rule));
      made.min = below(3);
      made.max = below(2) ? -1 : made.min + below(wide && below(4) == 0 ? 20 : 3);
    } else {
      made.kind = Part::rule;
      made.index = rule + 1 + static_cast<std::size_t>(below(static_cast<int>(rules.size() - rule - 1)));
    }
    return made;
  }

  std::string text_of(const Part& part) const {
    std::string text;
    switch (part.kind) {
      case Part::letter:
        return std::string("\"") + part.character + "\"";
      case Part::rule:
        return part.index == 0 ? "root" : "r" + std::to_string(part.index);
      case Part::repetition:
        return "(" + text_of(part.parts[0]) + "){" + std::to_string(part.min) + "," +
               (part.max < 0 ? "" : std::to_string(part.max)) + "}";
      case Part::sequence:
      case Part::choice:
        for (const Part& inner : part.parts) {
          if (!text.empty()) text += part.kind == Part::choice ? " | " : " ";
          text += text_of(inner);
        }
        return part.parts.empty() ? "\"\"" : "(" + text + ")";
    }
    return text;
  }

  std::string text() const {
    std::string text;
    for (std::size_t i = 0; i < rules.size(); ++i) {
      text += (i == 0 ? "root" : "r" + std::to_string(i)) + " ::= " + text_of(rules[i]) + "\n";
    }
    return text;
  }

  Ends ends(const Part& part, const std::string& text, std::size_t at) const {
    switch (part.kind) {
      case Part::letter:
        return at < text.size() && text[at] == part.character ? Ends{at + 1} : Ends{};
      case Part::rule:
        return ends(rules[part.index], text, at);
      case Part::choice: {
        Ends all;
        for (const Part& inner : part.parts) all.merge(ends(inner, text, at));
        return all;
      }
      case Part::sequence: {
        Ends now{at};
        for (const Part& inner : part.parts) now = after(inner, text, now);
        return now;
      }
      case Part::repetition: {
        Ends now{at}, all;
        // More rounds than the text has bytes add nothing but empty ones.
        const int rounds = part.max < 0 ? part.min + static_cast<int>(text.size()) + 1 : part.max;
        for (int i = 0; i <= rounds; ++i) {
          if (i >= part.min) all.insert(now.begin(), now.end());
          now = after(part.parts[0], text, now);
        }
        return all;
      }
    }
    return {};
  }

  Ends after(const Part& part, const std::string& text, const Ends& starts) const {
    Ends all;
    for (const std::size_t start : starts) all.merge(ends(part, text, start));
    return all;
  }
};

// Takes a text from its start, as advance() does, but forgets before each byte what it knows.
bool advances_forgetting(GrammarState& state, const std::string& text) {
  state.restart();
  return std::ranges::all_of(text, [&](char c) {
    state.forget();
    return state.advance({&c, 1});
  });
}

void expect_random_matches(bool wide, unsigned count) {
  std::vector<std::string> texts{""};
  for (std::size_t i = 0; texts[i].size() < 6; ++i) {
    for (const char c : {'a', 'b'}) texts.push_back(texts[i] + c);
  }
  std::size_t matched = 0;
  for (unsigned seed = 0; seed < count; ++seed) {
    const RandomGrammar grammar(seed, wide);
    GrammarState state(std::make_shared<const Grammar>(parse_grammar(grammar.text(), "random")));
    std::set<std::string> language;
    for (const std::string& text : texts) {
      if (grammar.ends(grammar.rules[0], text, 0).contains(text.size())) language.insert(text);
    }
    matched += language.size();
    if (!language.empty()) {
      const auto shorter = [](const std::string& a, const std::string& b) { return a.size() < b.size(); };
      EXPECT_EQ(state.bytes_to_end(), std::min_element(language.begin(), language.end(), shorter)->size());
    }
    for (const std::string& text : texts) {
      state.restart();
      const bool prefix = state.advance(text);
      ASSERT_EQ(prefix && state.may_end(), language.contains(text)) << grammar.text() << text;
      ASSERT_EQ(advances_forgetting(state, text), prefix) << grammar.text() << text;
      ASSERT_EQ(prefix && state.may_end(), language.contains(text)) << grammar.text() << text;
      const bool begins_one = std::any_of(language.begin(), language.end(),
                                          [&](const std::string& whole) { return whole.starts_with(text); });
      const bool ends_within_reach = prefix && text.size() + state.bytes_to_end() <= 6;
      ASSERT_TRUE(prefix || !begins_one) << grammar.text() << text;
      ASSERT_TRUE(begins_one || !ends_within_reach) << grammar.text() << text;
    }
  }
  EXPECT_GT(matched, 5 * count) << "the grammars are not trivial";
}

TEST(Grammar, RandomOnesMatchWhatThePlainestMatcherMatches) {
  expect_random_matches(false, cases(400));
}

TEST(Grammar, RandomOnesOfManyOptionalPartsMatchWhatThePlainestMatcherMatches) {
  expect_random_matches(true, cases(100));
}

}  // namespace
}  // namespace minimind
