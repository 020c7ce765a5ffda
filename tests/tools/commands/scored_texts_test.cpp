#include "tools/commands/scored_texts.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_file.h"

namespace minimind {
namespace {

// A tokenizer whose bos and eos are tokens of no text, and that has a token for "x" alone.
Tokenizer tokenizer_of_x() {
  TokenizerData data;
  data.source = "test.json";
  data.vocab = {{"<s>", 0}, {"</s>", 1}, {"x", 2}};
  data.bos_token = "<s>";
  data.eos_token = "</s>";
  return Tokenizer(data);
}

TEST(ScoredTexts, AConversationRequiresTokensForItsMarks) {
  const ChatTemplate chat_template = ChatTemplate::of_family(Family::v3, {});
  const TrainingTextOptions options{Family::v3, false, [&]() -> const ChatTemplate& { return chat_template; }};
  ScoredTexts texts;
  const std::string line =
      R"({"conversations": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "x"}]})";
  EXPECT_EQ(error_of([&] { add_line(texts, line, "a.jsonl: line 7", tokenizer_of_x(), options); }),
            "a.jsonl: line 7: conversations is a conversation, but the tokenizer has no tokens for '<s>assistant', "
            "expected some; name another tokenizer with --tokenizer");
}

// A tokenizer with the marks of MiniMind's texts and a token for each letter of "assistant" and "x".
Tokenizer tokenizer_with_marks(bool with_pad) {
  TokenizerData data;
  data.source = "test.json";
  data.vocab = {{"a", 0}, {"s", 1}, {"i", 2}, {"t", 3}, {"n", 4}, {"x", 5}};
  for (const auto& [id, mark] : {std::pair(6, "<s>"), {7, "</s>"}, {8, "<pad>"}}) {
    data.added_tokens.push_back({.id = id, .content = mark, .special = true});
  }
  data.bos_token = "<s>";
  data.eos_token = "</s>";
  if (with_pad) data.pad_token = "<pad>";
  return Tokenizer(data);
}

using Ids = std::vector<std::int32_t>;

ScoredTexts read_line(const std::string& line, const Tokenizer& with, Family family, const char* source = "") {
  const ChatTemplate chat_template(source, "test.jinja", {});
  ScoredTexts texts;
  add_line(texts, line, "line 7", with, {family, false, [&]() -> const ChatTemplate& { return chat_template; }});
  return texts;
}

Ids scored_ids(const ScoredTexts& texts) {
  Ids ids;
  for (std::size_t i = 0; i < texts.tokens.size(); ++i) {
    if (texts.uses[i] != TokenUse::read) ids.push_back(texts.tokens[i]);
  }
  return ids;
}

TEST(ScoredTexts, OnlyTextsOfFamiliesWithMarksInTheirDataMayHaveThem) {
  const auto tokens = [](const char* text, Family family) {
    return read_line(std::string(R"({"text": ")") + text + "\"}", tokenizer_with_marks(true), family).tokens;
  };
  for (const Family family : {Family::v2, Family::llama}) {
    for (const char* text : {"x", "<s>x", "x</s>", "<s>x</s>"}) EXPECT_EQ(tokens(text, family), (Ids{6, 5, 7})) << text;
    EXPECT_EQ(tokens("", family), (Ids{6, 7}));
  }
  EXPECT_EQ(tokens("<s>x</s>", Family::v3), (Ids{6, 6, 5, 7, 7}));
}

TEST(ScoredTexts, TheMaskOfTheFirstDatasetsStartsAndEndsATokenLate) {
  const std::string line = R"({"conversations": [{"role": "assistant", "content": "x"}]})";
  const auto scored = [&](bool with_pad, Family family, const char* source) {
    return scored_ids(read_line(line, tokenizer_with_marks(with_pad), family, source));
  };
  const char *const closed = "<s>assistant\nnx</s>", *const open = "<s>assistant\nnx";
  for (const Family family : {Family::v1, Family::v2_early}) {
    EXPECT_EQ(scored(true, family, closed), (Ids{5, 7, 8}));
    EXPECT_EQ(scored(false, family, closed), (Ids{5, 7}));
  }
  EXPECT_EQ(scored(true, Family::v3, closed), (Ids{4, 5, 7}));
  EXPECT_EQ(scored(true, Family::v3, open), (Ids{4, 5})) << "to the end, if nothing closes the turn";
}

TEST(ScoredTexts, LinesThatAreNoTextsAreNamed) {
  const auto error = [](const std::string& line) {
    return error_of([&] { read_line(line, tokenizer_with_marks(true), Family::v3); });
  };
  EXPECT_EQ(error(R"({"prompt": "x", "text": ""})"), "line 7 has a text of 0 tokens, expected 1 or more");
  EXPECT_TRUE(error(R"({"prompt": 1, "text": "x"})").starts_with("line 7 is not a text, expected a JSON string"));
  EXPECT_EQ(error_of([&] { read_lines("\n", "", tokenizer_with_marks(true), {}); }),
            "the input: is empty, expected one line of JSON per text; name the file of texts");
}

TEST(ScoredTexts, TrainingDataRequiresATokenizerWithBothMarks) {
  for (const char* only : {"", "<s>", "</s>"}) {
    TokenizerData data;
    data.source = "test.json";
    data.vocab = {{"<s>", 0}, {"</s>", 1}, {"x", 2}};
    if (std::string_view(only) == "<s>") data.bos_token = only;
    if (std::string_view(only) == "</s>") data.eos_token = only;
    EXPECT_EQ(error_of([&] { read_line(R"({"text": "x"})", Tokenizer(data), Family::v3); }),
              "line 7 requires the tokenizer's bos_token and eos_token, expected them in tokenizer_config.json; name "
              "another tokenizer with --tokenizer");
  }
}

}  // namespace
}  // namespace minimind
