#include "runtime/tokenizer/tokenizer_data.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace minimind {
namespace {

// The pieces of `text` in one line: added tokens by id, text in brackets.
std::string split(std::vector<AddedToken> tokens, std::string_view text) {
  std::vector<TextPiece> pieces;
  AddedTokenSplitter(std::move(tokens)).split(text, pieces);
  std::string shown;
  for (const TextPiece& piece : pieces) {
    shown += piece.id ? std::to_string(*piece.id) : "[" + std::string(piece.text) + "]";
  }
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

}  // namespace
}  // namespace minimind
