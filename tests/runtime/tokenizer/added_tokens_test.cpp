#include "runtime/tokenizer/tokenizer_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/cpu_seconds.h"
#include "weights/base/cancel.h"

namespace minimind {
namespace {

// The pieces of `text` in one line: added tokens by id, text in brackets.
std::string split(const std::vector<AddedToken>& tokens, std::string_view text, const TextMarks& marks = {}) {
  std::string shown;
  AddedTokenSplitter(tokens, false).split(text, marks, 0, [&](const TextPiece& piece) {
    shown += piece.id ? std::to_string(*piece.id) : "[" + std::string(piece.text) + "]";
  });
  return shown;
}

TEST(AddedTokens, AreCutOutAnywhere) {
  const std::vector<AddedToken> tokens = {{.id = 7, .content = "<s>"}, {.id = 8, .content = "世界"}};
  EXPECT_EQ(split(tokens, "<s>a<s><s>你好世界"), "7[a]77[你好]8");
  EXPECT_EQ(split(tokens, "<s <S> s>"), "[<s <S> s>]");
  EXPECT_EQ(split(tokens, ""), "");
  EXPECT_EQ(split({}, "a"), "[a]");
}

TEST(AddedTokens, LeftmostThenLongestWins) {
  const std::vector<AddedToken> tokens = {{.id = 1, .content = "ab"},
                                          {.id = 2, .content = "abcd"},
                                          {.id = 3, .content = "bcdef"},
                                          {.id = 4, .content = "b"}};
  EXPECT_EQ(split(tokens, "abcdef"), "2[ef]");
  EXPECT_EQ(split(tokens, "abcabbcd"), "1[c]14[cd]");
  EXPECT_EQ(split(tokens, "xbcdef"), "[x]3");
}

TEST(AddedTokens, StripTakesTheAdjacentWhitespace) {
  EXPECT_EQ(split({{.id = 1, .content = "m", .lstrip = true}}, "a \t\u3000m b"), "[a]1[ b]");
  EXPECT_EQ(split({{.id = 1, .content = "m", .rstrip = true}}, "a m \n\u00A0b m "), "[a ]1[b ]1");
  EXPECT_EQ(split({{.id = 1, .content = "m", .lstrip = true, .rstrip = true}}, " m  m "), "11");
  EXPECT_EQ(split({{.id = 1, .content = "m", .lstrip = true}}, "\u200Bm"), "[\u200B]1");
}

TEST(AddedTokens, SingleWordRequiresNoAdjacentWordCharacter) {
  const std::vector<AddedToken> tokens = {{.id = 1, .content = "ab", .single_word = true}};
  EXPECT_EQ(split(tokens, "ab ab, (ab)"), "1[ ]1[, (]1[)]");
  EXPECT_EQ(split(tokens, "xab abx 1ab ab_ 你ab abe\u0301"), "[xab abx 1ab ab_ 你ab abe\u0301]");
  EXPECT_EQ(split(tokens, "\u0301ab ab\u200D Ⓐab ♠ab"), "[\u0301ab ab\u200D Ⓐab ♠]1");
}

// Hugging Face tokenizers 0.23.3 on tokens of whitespace that another token's rstrip has taken.
TEST(AddedTokens, WhitespaceTokensMatchInsideStrippedWhitespace) {
  EXPECT_EQ(split({{.id = 1, .content = "m", .rstrip = true}, {.id = 2, .content = " "}}, "xm   x"), "[x]1222[x]");
  EXPECT_EQ(split({{.id = 1, .content = " ", .lstrip = true, .rstrip = true}}, "   x"), "1[x]");
}

// The definition: at each byte the longest token that fits there, and the search continues behind it.
std::string split_by_definition(const std::vector<AddedToken>& tokens, std::string_view text, const TextMarks& marks) {
  std::string shown;
  const auto is_space = [&](std::size_t at) { return text[at] == ' '; };
  const auto show = [&](std::size_t begin, std::size_t end) {
    if (begin < end) shown += "[" + std::string(text.substr(begin, end - begin)) + "]";
  };
  std::size_t resume = 0;
  for (std::size_t at = 0; at < text.size();) {
    const AddedToken* longest = nullptr;
    for (const AddedToken& token : tokens) {
      const bool fits = text.substr(at).starts_with(token.content) && marks.first_from(at) >= at + token.content.size();
      if (fits && (!longest || token.content.size() > longest->content.size())) longest = &token;
    }
    std::size_t first = at++;
    if (!longest) continue;
    at = first + longest->content.size();
    std::size_t last = at;
    while (longest->lstrip && first > 0 && is_space(first - 1)) --first;
    while (longest->rstrip && last < text.size() && is_space(last)) ++last;
    if (longest->lstrip) first = std::max(first, resume);
    show(resume, first);
    if (first < last) shown += std::to_string(longest->id);
    resume = last;
  }
  show(resume, text.size());
  return shown;
}

TEST(AddedTokens, AreThoseOfTheDefinitionInAnyText) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
  const auto word = [&](std::size_t size) {
    std::string text;
    while (text.size() < size) text += "aab "[below(4)];
    return text;
  };
  for (int i = 0; i < 3000; ++i) {
    std::vector<AddedToken> tokens;
    for (std::size_t n = 1 + below(6); n > 0; --n) {
      const std::string content = word(1 + below(5));
      const bool is_new = std::ranges::find(tokens, content, &AddedToken::content) == tokens.end();
      const bool left = below(3) == 0, right = below(3) == 0;
      if (is_new) tokens.push_back({.id = static_cast<int>(n), .content = content, .lstrip = left, .rstrip = right});
    }
    const std::string text = word(below(30));
    TextMarks marks;
    for (std::size_t at = below(40); at < text.size(); at += 3 + below(9)) marks.add(at, std::min(at + 2, text.size()));
    EXPECT_EQ(split(tokens, text, marks), split_by_definition(tokens, text, marks)) << text;
  }
}

TEST(AddedTokens, TakeTimeLinearInTheText) {
  constexpr std::size_t size = 200'000;
  const std::string letters(size, 'a');
  const double start = cpu_seconds();
  EXPECT_EQ(split({{.id = 1, .content = " ", .lstrip = true, .rstrip = true}}, std::string(size, ' ')), "1");
  EXPECT_EQ(split({{.id = 1, .content = letters + "b"}}, letters + letters + "b").size(), size + 3);
  std::vector<AddedToken> many;
  for (std::size_t i = 0; i < 2000; ++i) {
    many.push_back({.id = 1, .content = letters.substr(0, i) + "b"});
    many.push_back({.id = 1, .content = "c" + letters.substr(0, i)});
  }
  EXPECT_EQ(split(many, letters), "[" + letters + "]");
  EXPECT_LT(cpu_seconds() - start, most_cpu_seconds);
}

TEST(AddedTokens, CanBeCancelled) {
  const std::atomic<bool> cancelled{true};
  const Cancellation cancellation(cancelled);
  EXPECT_THROW(split({{.id = 1, .content = "b"}}, std::string(100'000, 'a')), Cancelled);
}

}  // namespace
}  // namespace minimind
