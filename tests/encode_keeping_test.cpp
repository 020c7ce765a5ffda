#include "runtime/encode_keeping.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/small_chat.h"

namespace minimind {
namespace {

using Ids = std::vector<std::int32_t>;

class EncodeKeeping : public testing::Test {
 protected:
  // One token a byte, but for special tokens.
  Ids spelled_out(const std::string& text) const {
    Ids ids;
    for (const std::int32_t id : tokenizer_.encode(text)) {
      if (tokenizer_.is_special(id)) {
        ids.push_back(id);
        continue;
      }
      for (const char byte : tokenizer_.token_bytes(id)) {
        ids.push_back(tokenizer_.id_of(to_byte_level(std::string{byte})).value());
      }
    }
    return ids;
  }

  Ids keeping(const std::string& text, const Ids& known) const { return encode_keeping(tokenizer_, text, known); }

  static Ids joined(Ids a, const Ids& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  Tokenizer tokenizer_ = Tokenizer(chat_tokenizer_data());
};

TEST_F(EncodeKeeping, WithoutKnownTokensItIsEncode) {
  EXPECT_EQ(keeping("the user<|im_end|>", {}), tokenizer_.encode("the user<|im_end|>"));
  EXPECT_EQ(keeping("", {}), Ids{});
  EXPECT_EQ(keeping("", {1}), Ids{});
}

TEST_F(EncodeKeeping, TokensThatSpellTheSameTextStay) {
  const std::string begin = "<|im_start|>the user", end = "<|im_end|>\nthe user";
  const Ids known = spelled_out(begin);
  EXPECT_NE(known, tokenizer_.encode(begin));
  EXPECT_EQ(keeping(begin + end, known), joined(known, tokenizer_.encode(end)));
  EXPECT_EQ(keeping(begin, known), known);
}

TEST_F(EncodeKeeping, WhereTheTextDiffersItIsEncodedFromTheSpecialTokenBefore) {
  const Ids known = spelled_out("<|im_start|>the user<|im_end|>the user and more");
  const Ids kept = spelled_out("<|im_start|>the user<|im_end|>");
  EXPECT_EQ(keeping("<|im_start|>the user<|im_end|>the use", known), joined(kept, tokenizer_.encode("the use")));
  EXPECT_EQ(keeping("<|im_start|>the user<|im_end|>", known), kept);
  EXPECT_EQ(keeping("the user", known), tokenizer_.encode("the user"));
}

TEST_F(EncodeKeeping, ACharacterThatWasCutOffIsTheOneThatStandsForIt) {
  Ids known = spelled_out("<|im_start|>你");
  known.pop_back();
  const Ids end = tokenizer_.encode("<|im_end|>");
  EXPECT_EQ(keeping("<|im_start|>\uFFFD<|im_end|>", known), joined(known, end));
  const Ids later = joined(joined(known, end), spelled_out("the"));
  EXPECT_EQ(keeping("<|im_start|>\uFFFD<|im_end|>the<|im_end|>", later), joined(later, end));
}

TEST_F(EncodeKeeping, IdsWithoutATokenChangeNothing) {
  EXPECT_EQ(tokenizer_.decode(keeping("the user", {100000, -1}), false), "the user");
}

}  // namespace
}  // namespace minimind
