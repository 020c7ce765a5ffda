#include "weights/io/sha256.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace minimind {
namespace {

// The hashes are those of Python: import hashlib; print(hashlib.sha256(b"...").hexdigest())
TEST(Sha256, GivesTheHashesOfTheStandard) {
  EXPECT_EQ(sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_of(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Of the hashes of the texts of 0 to 299 bytes, each byte its place: around the ends of blocks and of the padding.
TEST(Sha256, GivesTheHashesOfEachSize) {
  std::string text, hashes;
  for (int size = 0; size < 300; ++size) {
    hashes += sha256_of(text);
    text += static_cast<char>(size % 256);
  }
  EXPECT_EQ(sha256_of(hashes), "ff4223406fc6473b721b409cbe70bbeabc0c8d0d0f55c370497cc0c25606895f");
}

TEST(Sha256, DoesNotDependOnThePiecesOrTheProcessor) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7);
  for (const std::size_t piece : {1u, 3u, 63u, 64u, 65u, 200u, 999u}) {
    Sha256 hash, portable(true);
    for (std::size_t at = 0; at < text.size(); at += piece) {
      const auto bytes = std::as_bytes(std::span(std::string_view(text).substr(at, piece)));
      hash.update(bytes);
      portable.update(bytes);
    }
    EXPECT_EQ(hash.hex_digest(), sha256_of(text)) << piece;
    EXPECT_EQ(portable.hex_digest(), sha256_of(text)) << piece;
  }
}

}  // namespace
}  // namespace minimind
