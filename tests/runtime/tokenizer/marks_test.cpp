#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/text/marked_text.h"
#include "runtime/tokenizer/files.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/support/golden_tokenizer.h"
#include "tests/support/small_chat.h"

namespace minimind {
namespace {

using Ids = std::vector<std::int32_t>;

Ids encode(const Tokenizer& tokenizer, const MarkedText& text) {
  return tokenizer.encode(text.bytes, text.marks);
}

bool has_added(const Tokenizer& tokenizer, const Ids& ids) {
  return std::any_of(ids.begin(), ids.end(), [&](std::int32_t id) { return tokenizer.is_added(id); });
}

TEST(TokenizerMarks, MarkedTextSpellsNoAddedToken) {
  const Tokenizer tokenizer(chat_tokenizer_data());
  const std::int32_t end = *tokenizer.id_of("<|im_end|>");
  MarkedText text("<|im_end|>");
  text.append(MarkedText::all("x<|im_end|><think>"));
  text.append("<|im_end|>");
  const Ids ids = encode(tokenizer, text);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), end), 2);
  EXPECT_EQ(ids.front(), end);
  EXPECT_EQ(ids.back(), end);
  EXPECT_FALSE(has_added(tokenizer, {ids.begin() + 1, ids.end() - 1}));
  EXPECT_EQ(tokenizer.decode(ids, false), text.bytes);
}

TEST(TokenizerMarks, NoAddedTokenIsHalfMarked) {
  const Tokenizer tokenizer(chat_tokenizer_data());
  const std::string token = "<|im_start|>";
  for (std::size_t cut = 0; cut < token.size(); ++cut) {
    for (const bool marked_first : {true, false}) {
      MarkedText text = marked_first ? MarkedText::all(token.substr(0, cut)) : MarkedText(token.substr(0, cut));
      marked_first ? text.append(token.substr(cut)) : text.append(MarkedText::all(token.substr(cut)));
      EXPECT_EQ(has_added(tokenizer, encode(tokenizer, text)), marked_first && cut == 0) << cut;
      EXPECT_EQ(tokenizer.decode(encode(tokenizer, text), false), token);
    }
  }
}

// A marked byte ends the longest match, but not a shorter one before it.
TEST(TokenizerMarks, AShorterTokenBeforeAMarkIsFound) {
  TokenizerData data = chat_tokenizer_data();
  for (const char* const longer : {"<s>x", "<s>xyz"}) {
    data.added_tokens.push_back({.id = static_cast<std::int32_t>(data.vocab.size()), .content = longer});
    data.vocab.emplace_back(longer, data.added_tokens.back().id);
  }
  const Tokenizer tokenizer(data);
  MarkedText text("<s>x");
  text.append(MarkedText::all("y"));
  text.append("z");
  const Ids ids = encode(tokenizer, text);
  EXPECT_EQ(ids.front(), *tokenizer.id_of("<s>x"));
  EXPECT_EQ(tokenizer.decode(ids, false), "<s>xyz");
}

TEST(TokenizerMarks, OtherTextHasTheIdsThatItHasWithoutMarks) {
  const Tokenizer tokenizer(read_tokenizer(own_tokenizer));
  std::ifstream file(own_tokenizer + "/golden.jsonl");
  std::size_t count = 0;
  for (std::string line; std::getline(file, line);) {
    const auto golden = nlohmann::json::parse(line);
    if (!golden.contains("text") || golden["text"].is_null()) continue;
    const std::string text = golden["text"];
    const Ids plain = tokenizer.encode(text), marked = encode(tokenizer, MarkedText::all(text));
    if (has_added(tokenizer, plain)) {
      EXPECT_FALSE(has_added(tokenizer, marked)) << line;
      EXPECT_EQ(tokenizer.decode(marked, false), text) << line;
    } else {
      EXPECT_EQ(marked, plain) << line;
      ++count;
    }
  }
  EXPECT_GT(count, 100u);
}

// A tokenizer whose merges, or whole words, lead to an added token.
TEST(TokenizerMarks, WordsOfTheModelBecomeNoAddedToken) {
  TokenizerData data = chat_tokenizer_data();
  for (const bool whole_words : {false, true}) {
    data.ignore_merges = whole_words;
    data.added_tokens.push_back({.id = static_cast<std::int32_t>(data.vocab.size()) - 1, .content = "user"});
    const Tokenizer tokenizer(data);
    const std::int32_t user = *tokenizer.id_of("user");
    EXPECT_EQ(tokenizer.encode("user"), Ids{user});
    const Ids marked = encode(tokenizer, MarkedText::all("user"));
    EXPECT_EQ(std::count(marked.begin(), marked.end(), user), 0);
    EXPECT_EQ(tokenizer.decode(marked, false), "user");
    data.added_tokens.pop_back();
  }
}

TEST(TokenizerMarks, TextThatIsNotUtf8IsMarkedWhole) {
  const Tokenizer tokenizer(chat_tokenizer_data());
  MarkedText text = MarkedText::all("\xff<|im_end|>");
  EXPECT_FALSE(has_added(tokenizer, encode(tokenizer, text)));
}

}  // namespace
}  // namespace minimind
