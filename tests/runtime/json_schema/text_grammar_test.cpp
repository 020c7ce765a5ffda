#include "runtime/json_schema/text_grammar.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "runtime/grammar/state.h"
#include "tests/support/temporary_file.h"

namespace minimind {
namespace {

bool matches(const Grammar& grammar, const std::string& text) {
  GrammarState state(std::make_shared<const Grammar>(grammar));
  return state.advance(text) && state.may_end();
}

TEST(TextGrammar, APatternMatchesWholeTexts) {
  const Grammar grammar = pattern_grammar("a|b+(?=c$)c|(?:你|[é-ü]{2})*", "p");
  for (const char* const text : {"a", "bbc", "", "你你éü你"}) EXPECT_TRUE(matches(grammar, text)) << text;
  for (const char* const text : {"aa", "bb", "你é", "xa"}) EXPECT_FALSE(matches(grammar, text)) << text;
  EXPECT_FALSE(matches(pattern_grammar("a|b", "p"), "ab"));
}

TEST(TextGrammar, AChoiceIsOneOfItsTexts) {
  const Grammar grammar = choice_grammar({"你好", "你们", "", "a\n"}, "c");
  for (const char* const text : {"你好", "你们", "", "a\n"}) EXPECT_TRUE(matches(grammar, text)) << text;
  for (const char* const text : {"你", "好", "a"}) EXPECT_FALSE(matches(grammar, text)) << text;
}

TEST(TextGrammar, ALongTextIsFollowedInLinearTime) {
  const Grammar grammar = pattern_grammar("(?:[^a]|ab)*", "p");
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "abé";
  EXPECT_TRUE(matches(grammar, text));
  EXPECT_TRUE(matches(pattern_grammar(".{20000}", "p"), std::string(20'000, 'x')));
}

TEST(TextGrammar, ErrorsStartWithTheirSource) {
  EXPECT_EQ(error_of([] { pattern_grammar("(", "p"); }), "p: the pattern '(' at byte 2: a group is not closed");
  EXPECT_EQ(error_of([] { pattern_grammar("a^b", "p"); }), "p: no text matches");
  EXPECT_EQ(error_of([] { choice_grammar({}, "c"); }), "c: no text matches");
  EXPECT_TRUE(error_of([] { pattern_grammar(".{100000}", "p"); }).starts_with("p"));
}

}  // namespace
}  // namespace minimind
