#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/files.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/text/utf8.h"
#include "runtime/tokenizer/vocabulary.h"
#include "tests/support/golden_tokenizer.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

using Ids = std::vector<std::int32_t>;

// A tokenizer whose token N is the byte N, and then the `words` in order; a word's merge is of its bytes left to right.
TokenizerData byte_tokenizer(const std::vector<std::string>& words = {}) {
  TokenizerData data;
  data.source = "test.json";
  for (int byte = 0; byte < 256; ++byte)
    data.vocab.emplace_back(to_byte_level(std::string{static_cast<char>(byte)}), byte);
  for (const std::string& word : words) {
    data.vocab.emplace_back(to_byte_level(word), static_cast<std::int32_t>(data.vocab.size()));
    data.merges.emplace_back(to_byte_level(word.substr(0, word.size() - 1)),
                             to_byte_level(word.substr(word.size() - 1)));
  }
  return data;
}

std::string error_of(const TokenizerData& data) {
  try {
    const Tokenizer tokenizer(data);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Tokenizer, EncodesAndDecodesAsHuggingFaceTokenizers) {
  expect_golden(load_tokenizer(own_tokenizer), own_tokenizer + "/golden.jsonl");
}

TEST(Tokenizer, EncodesAndDecodesMiniMindsVocabulariesExactly) {
  if (reference_tokenizers.empty()) GTEST_SKIP() << "MINIMIND_REFERENCE is not set";
  for (const std::string version : {"v1", "v2", "v3"}) {
    const Tokenizer tokenizer = load_tokenizer(reference_tokenizers + "/" + version);
    expect_golden(tokenizer, reference_tokenizers + "/" + version + "/golden.jsonl");
    expect_golden(tokenizer, reference_tokenizers + "/" + version + "/decode_golden.jsonl");
    EXPECT_EQ(tokenizer.vocab_size(), 6400u);
    EXPECT_EQ(tokenizer.bos_id(), 1);
    EXPECT_EQ(tokenizer.eos_id(), 2);
    EXPECT_TRUE(tokenizer.chat_template().has_value());
  }
}

TEST(Tokenizer, ReturnsTheBytesAndSpellingOfTokens) {
  const Tokenizer tokenizer = load_tokenizer(own_tokenizer);
  EXPECT_EQ(tokenizer.vocab_size(), 426u);
  EXPECT_EQ(tokenizer.bos_id(), 1);
  EXPECT_EQ(tokenizer.eos_id(), 0);
  EXPECT_EQ(tokenizer.pad_id(), std::nullopt);
  EXPECT_EQ(tokenizer.chat_template(), "{{ messages[0].content }}");
  EXPECT_EQ(tokenizer.id_of("<|end|>"), 0);
  EXPECT_EQ(tokenizer.id_of("no such token"), std::nullopt);
  EXPECT_TRUE(tokenizer.is_special(0));
  EXPECT_FALSE(tokenizer.is_special(425));
  EXPECT_EQ(tokenizer.token_bytes(425), "模型");
  const auto the = tokenizer.id_of("Ġthe");
  ASSERT_TRUE(the.has_value());
  EXPECT_EQ(tokenizer.token_text(*the), "Ġthe");
  EXPECT_EQ(tokenizer.token_bytes(*the), " the");
}

TEST(Tokenizer, IdsWithoutATokenAreOmitted) {
  const Tokenizer tokenizer = load_tokenizer(own_tokenizer);
  for (const std::int32_t id : {-1, 426, 1 << 30, INT32_MIN}) {
    EXPECT_FALSE(tokenizer.has(id));
    EXPECT_FALSE(tokenizer.is_special(id));
    EXPECT_EQ(tokenizer.token_bytes(id), "");
    EXPECT_EQ(tokenizer.decode(Ids{id}, false), "");
  }
  EXPECT_TRUE(tokenizer.has(0));
}

TEST(Tokenizer, TokenBytesInAStreamGiveTheDecodedText) {
  const Tokenizer tokenizer(byte_tokenizer());
  const Ids ids = tokenizer.encode("你好 😀");
  ASSERT_EQ(ids.size(), 11u);
  Utf8Stream stream;
  std::string text;
  for (const std::int32_t id : ids) text += stream.push(tokenizer.token_bytes(id));
  EXPECT_EQ(text + stream.finish(), "你好 😀");
}

TEST(Tokenizer, EncodesBrokenUtf8AsReplacementCharacters) {
  const Tokenizer tokenizer = load_tokenizer(own_tokenizer);
  EXPECT_EQ(tokenizer.encode("a\xE4\xBD b\xFF\xC3"), tokenizer.encode("a\uFFFD b\uFFFD\uFFFD"));
}

TEST(Tokenizer, AddsASpaceToTextsAndToWhatFollowsAnAddedToken) {
  TokenizerData data = byte_tokenizer();
  data.add_prefix_space = true;
  data.added_tokens = {{.id = 256, .content = "<s>"}};
  const Tokenizer tokenizer(data);
  EXPECT_EQ(tokenizer.encode("a<s>b<s> c<s>\n"), (Ids{' ', 'a', 256, ' ', 'b', 256, ' ', 'c', 256, ' ', '\n'}));
  EXPECT_EQ(tokenizer.encode(""), Ids{});
}

TEST(Tokenizer, MergesAcrossWordsOnlyIfTextIsNotSplit) {
  TokenizerData data = byte_tokenizer({"1a"});
  EXPECT_EQ(Tokenizer(data).encode("1a"), (Ids{'1', 'a'}));
  data.use_regex = false;
  EXPECT_EQ(Tokenizer(data).encode("1a"), Ids{256});
}

TEST(Tokenizer, TakesAWholeWordWithoutMergesIfAsked) {
  TokenizerData data = byte_tokenizer({"ab", "abc"});
  data.merges.clear();
  EXPECT_EQ(Tokenizer(data).encode("abc abc"), (Ids{'a', 'b', 'c', ' ', 'a', 'b', 'c'}));
  data.ignore_merges = true;
  EXPECT_EQ(Tokenizer(data).encode("abc abc"), (Ids{257, ' ', 'a', 'b', 'c'}));
}

TEST(Tokenizer, BytesWithoutATokenBecomeTheUnkTokenOrNothing) {
  TokenizerData data = byte_tokenizer();
  data.vocab.erase(data.vocab.begin() + 'x', data.vocab.begin() + 'z');
  EXPECT_EQ(Tokenizer(data).encode("axyaxa"), (Ids{'a', 'a', 'a'}));
  data.unk_token = "?";
  EXPECT_EQ(Tokenizer(data).encode("axyaxa"), (Ids{'a', '?', '?', 'a', '?', 'a'}));
  data.fuse_unk = true;
  EXPECT_EQ(Tokenizer(data).encode("axyaxa"), (Ids{'a', '?', 'a', '?', 'a'}));
  data.unk_token = "<unk>";
  EXPECT_EQ(error_of(data), "test.json: model.unk_token: found '<unk>', expected a token of model.vocab");
}

TEST(Tokenizer, LooksForNormalizedAddedTokensInWhatTheOthersLeave) {
  TokenizerData data = byte_tokenizer();
  data.added_tokens = {{.id = 256, .content = "abcd", .normalized = true}, {.id = 257, .content = "cd"}};
  EXPECT_EQ(Tokenizer(data).encode("abcd"), (Ids{'a', 'b', 257}));
}

TEST(Tokenizer, ATokenOutsideTheByteAlphabetRepresentsItsText) {
  TokenizerData data = byte_tokenizer();
  data.vocab.emplace_back("Ġ你", 256);
  EXPECT_EQ(Tokenizer(data).decode(Ids{256, 'a'}, false), "Ġ你a");
}

TEST(Tokenizer, EncodesAMegabyteOfOneWord) {
  const Tokenizer tokenizer = load_tokenizer(own_tokenizer);
  for (const std::string unit : {"a", " ", "\n", "我们的", "😀"}) {
    std::string text;
    while (text.size() < (1 << 20)) text += unit;
    const Ids ids = tokenizer.encode(text);
    EXPECT_LE(ids.size(), text.size());
    EXPECT_TRUE(tokenizer.decode(ids, false) == text) << unit;
  }
}

TEST(Tokenizer, RejectsIdsThatAreTakenOrOutOfRange) {
  TokenizerData data = byte_tokenizer();
  data.vocab.emplace_back("zz", 'a');
  EXPECT_EQ(error_of(data), "test.json: model.vocab: token 'zz': found id 97, which 'a' has, expected a unique id");
  data.vocab.back() = {"zz", 1 << 20};
  EXPECT_EQ(error_of(data), "test.json: model.vocab: token 'zz': found id 1048576, expected one from 0 to 1048575");
  data.vocab.back() = {"zz", -1};
  EXPECT_EQ(error_of(data), "test.json: model.vocab: token 'zz': found id -1, expected one from 0 to 1048575");
  data.vocab.back() = {"a", 256};
  EXPECT_EQ(error_of(data), "test.json: model.vocab: token 'a': is repeated, expected once");
}

TEST(Tokenizer, RejectsAddedTokensWithIdsUnlikeHuggingFaces) {
  TokenizerData data = byte_tokenizer();
  data.added_tokens = {{.id = 300, .content = "<s>"}};
  EXPECT_EQ(error_of(data),
            "test.json: added_tokens[0], '<s>': found id 300, expected 256, which is what Hugging Face "
            "tokenizers makes of it");
  data.added_tokens = {{.id = 'b', .content = "a"}};
  EXPECT_NE(error_of(data).find("found id 98, expected 97"), std::string::npos);
  data.added_tokens = {{.id = 256, .content = "<s>"}, {.id = 257, .content = "<s>"}};
  EXPECT_NE(error_of(data).find("'<s>': is repeated"), std::string::npos);
  data.added_tokens = {{.id = 256, .content = ""}};
  EXPECT_NE(error_of(data).find("empty content"), std::string::npos);
  data.vocab[0].second = 256;  // the id that comes next is that of a token already
  data.added_tokens = {{.id = 256, .content = "<s>"}};
  EXPECT_EQ(error_of(data), "test.json: added_tokens[0], '<s>': found id 256, which 'Ā' has, expected a unique id");
}

TEST(Tokenizer, RejectsMergesAndNamesWithoutAToken) {
  TokenizerData data = byte_tokenizer();
  data.merges = {{"a", "no"}};
  EXPECT_EQ(error_of(data), "test.json: model.merges[0]: found 'no', expected a token of model.vocab");
  data.merges = {{"a", "b"}};
  EXPECT_NE(error_of(data).find("found 'ab'"), std::string::npos);
  data.merges.clear();
  data.eos_token = "</s>";
  EXPECT_EQ(error_of(data),
            "test.json: has no token '</s>', which the tokenizer_config.json next to it names as "
            "eos_token, expected a token");
}

TEST(ByteLevel, SpellsEveryByteAndReadsItBack) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  EXPECT_EQ(from_byte_level(to_byte_level(bytes)), bytes);
  EXPECT_EQ(to_byte_level(" a\n\xAD\xE4"), "ĠaĊŃä");
  EXPECT_EQ(from_byte_level("Ġ你"), std::nullopt);
  EXPECT_EQ(from_byte_level(" "), std::nullopt);
  EXPECT_EQ(from_byte_level("\u0144"), std::nullopt);
  EXPECT_EQ(from_byte_level("a\xFF"), std::nullopt);
}

TEST(TextHash, NoTwoTextsHaveTheSamePolynomial) {
  const std::string after_zero("\0a", 2);
  EXPECT_NE(TextHash()("b"), TextHash()(after_zero));
  EXPECT_NE(TextHash()("1234567b"), TextHash()("1234567" + after_zero));
  EXPECT_NE(TextHash()(after_zero), TextHash()("a"));
  EXPECT_EQ(TextHash()(after_zero), TextHash()(std::string(after_zero)));
}

}  // namespace
}  // namespace minimind
