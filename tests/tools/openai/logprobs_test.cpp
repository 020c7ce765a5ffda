#include "tools/openai/logprobs.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/golden_engine.h"

namespace minimind {
namespace {

using LogprobsJson = nlohmann::ordered_json;

// Of the tokens: "a", the two halves of é, a byte that no text has, an end token, a special token of texts, "bc".
enum Id : std::int32_t { a, first_half, second_half, no_text, end, mark, bc };

class LogprobsTest : public testing::Test {
 protected:
  static std::vector<TokenScore> scores_of(const std::vector<std::int32_t>& ids) {
    std::vector<TokenScore> scores;
    for (const std::int32_t id : ids) {
      scores.push_back({.token = {id, -0.5}, .top = {{a, -0.25}, {no_text, -2}}});
    }
    return scores;
  }

  // As a client reads it.
  static LogprobsJson read(const LogprobsJson& written) { return LogprobsJson::parse(json_line(written)); }

  const Tokenizer tokenizer_ =
      tokenizer_of({"a", "\xC3", "\xA9", "\xFF", "<end>", "<mark>", "bc"}, {Id::end, Id::mark});
  const std::vector<std::int32_t> text_tokens_{mark};
  TokenPieces pieces_{tokenizer_, text_tokens_};
};

TEST_F(LogprobsTest, ATokenBelongsToThePieceWithItsFirstByte) {
  const auto scores = scores_of({a, first_half, second_half, bc});
  EXPECT_EQ(pieces_.take(scores, 0).size(), 0u);
  EXPECT_EQ(pieces_.take(scores, 1).size(), 1u);
  EXPECT_EQ(pieces_.take(scores, 3).size(), 2u) << "both halves start where the character does";
  EXPECT_EQ(pieces_.take(scores, 4).size(), 1u) << "the piece cuts it";
  EXPECT_EQ(pieces_.take_rest(scores, 5).size(), 0u);
}

TEST_F(LogprobsTest, TheEndTokenBelongsToTheLastPiece) {
  const auto scores = scores_of({a, end});
  EXPECT_EQ(pieces_.take(scores, 1).size(), 1u);
  EXPECT_EQ(pieces_.take_rest(scores, 1).size(), 1u);
}

TEST_F(LogprobsTest, TokensOfAStopStringBelongToNoPiece) {
  const auto scores = scores_of({a, bc, a, end});
  EXPECT_EQ(pieces_.take_rest(scores, 1).size(), 1u) << "the text ends before bc";
}

TEST_F(LogprobsTest, AChatHasTokensOfItsTextAlone) {
  EXPECT_TRUE(pieces_.is_text(mark)) << "a special token that the text shows";
  EXPECT_FALSE(pieces_.is_text(end));
  const LogprobsJson json = read(chat_logprobs(tokenizer_, pieces_, scores_of({mark, no_text, end})));
  ASSERT_EQ(json["content"].size(), 2u);
  EXPECT_EQ(json["content"][0]["token"], "<mark>");
  EXPECT_EQ(json["content"][1]["token"], "\xEF\xBF\xBD") << "the mark for a byte that is no UTF-8";
  EXPECT_EQ(json["content"][1]["bytes"], LogprobsJson{0xFF});
  EXPECT_EQ(json["content"][1]["logprob"], -0.5);
  EXPECT_EQ(json["content"][1]["token_id"], no_text);
  ASSERT_EQ(json["content"][1]["top_logprobs"].size(), 2u);
  EXPECT_EQ(json["content"][1]["top_logprobs"][0]["token"], "a");
  EXPECT_EQ(json["content"][1]["top_logprobs"][0]["token_id"], a);
  EXPECT_TRUE(chat_logprobs(tokenizer_, pieces_, {})["content"].empty());
}

// Offsets count characters; bytes that are none are spelled, so that no two tokens are alike.
TEST_F(LogprobsTest, ACompletionHasOffsetsAndAlternativesByText) {
  CompletionLogprobs logprobs(tokenizer_, TokenNames::texts, 10);
  logprobs.add_prompt(bc, {});
  logprobs.add(scores_of({first_half, second_half, a}));
  const LogprobsJson first = read(logprobs.take());
  EXPECT_EQ(first["tokens"], (LogprobsJson{"bc", "bytes:\\xc3", "bytes:\\xa9", "a"}));
  EXPECT_EQ(first["text_offset"], (LogprobsJson{10, 12, 12, 13}));
  EXPECT_EQ(first["token_logprobs"], (LogprobsJson{nullptr, -0.5, -0.5, -0.5}));
  EXPECT_TRUE(first["top_logprobs"][0].is_null());
  EXPECT_EQ(first["top_logprobs"][1], (LogprobsJson{{"a", -0.25}, {"bytes:\\xff", -2}, {"bytes:\\xc3", -0.5}}));
  EXPECT_EQ(first["top_logprobs"][3].size(), 2u) << "the token is one of the alternatives";
  logprobs.add(scores_of({no_text}));
  const LogprobsJson rest = read(logprobs.take());
  EXPECT_EQ(rest["tokens"], LogprobsJson::array({"bytes:\\xff"}));
  EXPECT_EQ(rest["text_offset"], LogprobsJson::array({14})) << "the lists continue the text";
}

}  // namespace
}  // namespace minimind
