#include "runtime/generate/generate.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace minimind {
namespace {

using Strings = std::vector<std::string>;

// Returns everything that is shown if `text` comes in pieces that start at the bits set in `cuts`.
std::string shown(const Strings& stops, const std::string& text, unsigned cuts, bool* stopped = nullptr) {
  StopFilter filter(stops);
  std::string result, piece;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (cuts >> i & 1u) {
      result += filter.push(piece);
      piece.clear();
    }
    piece += text[i];
  }
  result += filter.push(piece);
  result += filter.finish();
  if (stopped) *stopped = filter.stopped();
  return result;
}

TEST(StopFilter, ShowsEverythingAtOnceWithoutStopStrings) {
  StopFilter filter({});
  EXPECT_EQ(filter.push("abc"), "abc");
  EXPECT_EQ(filter.push(""), "");
  EXPECT_EQ(filter.finish(), "");
  EXPECT_FALSE(filter.stopped());
}

TEST(StopFilter, EmptyStopStringsNeverStop) {
  StopFilter filter({"", ""});
  EXPECT_EQ(filter.push("abc"), "abc");
  EXPECT_FALSE(filter.stopped());
}

TEST(StopFilter, KeepsBackOnlyPrefixesOfStopStrings) {
  StopFilter filter({"###", "END"});
  EXPECT_EQ(filter.push("a#"), "a");
  EXPECT_EQ(filter.push("b"), "#b");
  EXPECT_EQ(filter.push("##"), "");
  EXPECT_EQ(filter.push("E"), "##");
  EXPECT_EQ(filter.push("N"), "");
  EXPECT_EQ(filter.push("E"), "EN") << "the second E may start another END";
  EXPECT_EQ(filter.finish(), "E");
  EXPECT_FALSE(filter.stopped());
}

TEST(StopFilter, ShowsTheTextBeforeAStopStringOnly) {
  StopFilter filter({"END"});
  EXPECT_EQ(filter.push("one EN"), "one ");
  EXPECT_EQ(filter.push("D two"), "");
  EXPECT_TRUE(filter.stopped());
  EXPECT_EQ(filter.push("three"), "");
  EXPECT_EQ(filter.finish(), "");
}

TEST(StopFilter, FinishReturnsAnUnfinishedStopString) {
  StopFilter filter({"<|end|>"});
  EXPECT_EQ(filter.push("text<|en"), "text");
  EXPECT_EQ(filter.finish(), "<|en");
  EXPECT_FALSE(filter.stopped());
}

TEST(StopFilter, FindsAStopStringAfterAFalseStartOfItself) {
  StopFilter filter({"aab"});
  EXPECT_EQ(filter.push("aa"), "");
  EXPECT_EQ(filter.push("a"), "a");
  EXPECT_EQ(filter.push("b"), "");
  EXPECT_TRUE(filter.stopped());
}

TEST(StopFilter, StopsAtABytewiseMatchOfSeveralBytesACharacter) {
  StopFilter filter({"结束"});
  EXPECT_EQ(filter.push("话结"), "话");
  EXPECT_EQ(filter.push("束了"), "");
  EXPECT_TRUE(filter.stopped());
}

// The cuts of a text into tokens must not change its end: every way of cutting shows the same text.
TEST(StopFilter, ShowsTheSameHoweverTheTextIsCut) {
  struct Case {
    Strings stops;
    std::string text, wanted;
  };
  const Case cases[] = {
      {{"END"}, "xENDy", "x"},       {{"aab"}, "aaabx", "a"},      {{"abab"}, "abaabab", "aba"},
      {{"aba", "ba"}, "xabay", "x"}, {{"ab", "abc"}, "xabc", "x"}, {{"b", "abc"}, "xabcy", "xa"},
      {{"zz", "q"}, "zzq", ""},      {{"q"}, "abcdef", "abcdef"},  {{"ef!"}, "abcdef", "abcdef"},
  };
  for (const Case& c : cases) {
    for (unsigned cuts = 0; cuts < 1u << c.text.size(); ++cuts) {
      bool stopped = false;
      EXPECT_EQ(shown(c.stops, c.text, cuts, &stopped), c.wanted) << c.text << " cut by " << cuts;
      EXPECT_EQ(stopped, c.wanted != c.text) << c.text << " cut by " << cuts;
    }
  }
}

}  // namespace
}  // namespace minimind
