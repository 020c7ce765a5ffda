#include "runtime/tokenizer/bpe.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/unicode.h"

namespace minimind {
namespace {

using Words = std::vector<std::string>;

Words split(std::string_view text) {
  Words words;
  while (!text.empty()) {
    const std::size_t size = gpt2_word_size(text);
    words.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return words;
}

TEST(Gpt2Split, KeepsOneSpaceBeforeLettersNumbersAndTheRest) {
  EXPECT_EQ(split("Hello my 2 friends !"), (Words{"Hello", " my", " 2", " friends", " !"}));
  EXPECT_EQ(split("a1!b"), (Words{"a", "1", "!", "b"}));
  EXPECT_EQ(split("3.14"), (Words{"3", ".", "14"}));
}

TEST(Gpt2Split, CutsLowerCaseContractionsAtTheStartOfWordsOnly) {
  EXPECT_EQ(split("it's we'll I'd"), (Words{"it", "'s", " we", "'ll", " I", "'d"}));
  EXPECT_EQ(split("'re've'm't"), (Words{"'re", "'ve", "'m", "'t"}));
  EXPECT_EQ(split("'sat"), (Words{"'s", "at"}));
  EXPECT_EQ(split("IT'S"), (Words{"IT", "'", "S"}));
  EXPECT_EQ(split("''s"), (Words{"''", "s"}));
  EXPECT_EQ(split(" 's"), (Words{" '", "s"}));
  EXPECT_EQ(split("'l'"), (Words{"'", "l", "'"}));
  EXPECT_EQ(split("'"), (Words{"'"}));
}

TEST(Gpt2Split, LeavesTheLastWhitespaceToTheWordThatFollows) {
  EXPECT_EQ(split("a   b"), (Words{"a", "  ", " b"}));
  EXPECT_EQ(split("a\n\nb"), (Words{"a", "\n", "\n", "b"}));
  EXPECT_EQ(split("a\r\n b"), (Words{"a", "\r\n", " b"}));
  EXPECT_EQ(split("a \tb"), (Words{"a", " ", "\t", "b"}));
  EXPECT_EQ(split("a\u3000\u3000b"), (Words{"a", "\u3000", "\u3000", "b"}));
}

TEST(Gpt2Split, KeepsWhitespaceAtTheEndWhole) {
  EXPECT_EQ(split("a   "), (Words{"a", "   "}));
  EXPECT_EQ(split(" "), (Words{" "}));
  EXPECT_EQ(split("\n \n"), (Words{"\n \n"}));
}

TEST(Gpt2Split, TakesChineseLettersAsOneWordAndItsPunctuationAsAnother) {
  EXPECT_EQ(split("今天天气，很好。2024年"), (Words{"今天天气", "，", "很好", "。", "2024", "年"}));
}

TEST(Gpt2Split, CutsCombiningMarksAndJoinersFromLetters) {
  EXPECT_EQ(split("e\u0301a"), (Words{"e", "\u0301", "a"}));
  EXPECT_EQ(split("a\u200Bb"), (Words{"a", "\u200B", "b"}));
}

// unicode_classes.txt is what Hugging Face tokenizers does with every code point; generate.py wrote it. A utf8proc of
// another Unicode version fails here if it knows characters that tokenizers 0.23 does not.
TEST(UnicodeClasses, EqualHuggingFaceTokenizersForEveryCodePoint) {
  const std::string names[] = {"letter", "number", "space", "other"};
  std::ifstream runs(MINIMIND_SOURCE_DIR "/tests/golden_tokenizer/unicode_classes.txt");
  char32_t next_run = 0;
  std::string char_class, word, next_char_class, next_word;
  const auto read_run = [&] {
    std::uint32_t first = 0x110000;
    runs >> std::hex >> first >> next_char_class >> next_word;
    next_run = runs ? first : 0x110000;
  };
  read_run();
  ASSERT_EQ(next_run, 0u);
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c == next_run) {
      char_class = next_char_class;
      word = next_word;
      read_run();
    }
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    ASSERT_EQ(names[static_cast<int>(class_of(c))], char_class) << std::hex << static_cast<std::uint32_t>(c);
    ASSERT_EQ(is_white_space(c), char_class == "space") << std::hex << static_cast<std::uint32_t>(c);
    ASSERT_EQ(is_word_character(c), word == "word") << std::hex << static_cast<std::uint32_t>(c);
  }
}

}  // namespace
}  // namespace minimind
