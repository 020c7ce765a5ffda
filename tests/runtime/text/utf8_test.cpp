#include "runtime/text/utf8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

namespace minimind {
namespace {

std::string encode(char32_t c) {
  const auto byte = [](char32_t bits) { return static_cast<char>(bits); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | c >> 6), byte(0x80 | (c & 0x3F))};
  if (c < 0x10000) return {byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 0x3F)), byte(0x80 | (c & 0x3F))};
  return {byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 0x3F)), byte(0x80 | (c >> 6 & 0x3F)), byte(0x80 | (c & 0x3F))};
}

bool is_surrogate(char32_t c) {
  return c >= 0xD800 && c <= 0xDFFF;
}

// Lossy decoding by the definition itself: a maximal subpart is the longest prefix of any character, or one byte.
class Definition {
 public:
  Definition() {
    for (char32_t c = 0; c <= 0x10FFFF; ++c) {
      if (is_surrogate(c)) continue;
      const std::string bytes = encode(c);
      characters_.insert(bytes);
      for (std::size_t size = 1; size < bytes.size(); ++size) beginnings_.insert(bytes.substr(0, size));
    }
  }

  std::string lossy(const std::string& bytes) const {
    std::string text;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t character = longest(characters_, bytes, at);
      text += character > 0 ? bytes.substr(at, character) : "\uFFFD";
      at += character > 0 ? character : std::max<std::size_t>(1, longest(beginnings_, bytes, at));
    }
    return text;
  }

 private:
  static std::size_t longest(const std::unordered_set<std::string>& set, const std::string& bytes, std::size_t at) {
    for (std::size_t size = std::min<std::size_t>(4, bytes.size() - at); size > 0; --size) {
      if (set.contains(bytes.substr(at, size))) return size;
    }
    return 0;
  }

  std::unordered_set<std::string> characters_;
  std::unordered_set<std::string> beginnings_;
};

const Definition& definition() {
  static const Definition instance;
  return instance;
}

// The bytes at which the rules change, one inside each interval too.
const std::string boundary_bytes =
    "\x41\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xE1\xEC\xED\xEE\xEF\xF0\xF1\xF3\xF4\xF5\xFF";

std::string streamed(const std::string& bytes, const std::vector<std::size_t>& cuts) {
  Utf8Stream stream;
  std::string text;
  std::size_t begin = 0;
  for (const std::size_t end : cuts) {
    text += stream.push(bytes.substr(begin, end - begin));
    begin = end;
  }
  text += stream.push(bytes.substr(begin));
  return text + stream.finish();
}

TEST(Utf8, ReadsEveryCodePointForwardsAndBackwards) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (is_surrogate(c)) continue;
    const std::string bytes = encode(c);
    const Utf8Char first = first_utf8(bytes + "a");
    ASSERT_EQ(first.state, Utf8State::complete) << std::hex << static_cast<std::uint32_t>(c);
    ASSERT_EQ(first.code_point, c);
    ASSERT_EQ(first.size, bytes.size());
    const Utf8Char last = last_utf8("é" + bytes);
    ASSERT_EQ(last.code_point, c);
    ASSERT_EQ(last.size, bytes.size());
  }
}

// Python: bytes.decode("utf-8", "replace"), of the examples in Unicode 15, tables 3-8 to 3-11.
TEST(Utf8, ReplacesMaximalSubpartsAsPythonDoes) {
  EXPECT_EQ(to_utf8_lossy("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(to_utf8_lossy("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(to_utf8_lossy("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA\uFFFD\uFFFDB");
  EXPECT_EQ(to_utf8_lossy("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), "\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(to_utf8_lossy("\xE4\xBD"), "\uFFFD");
}

TEST(Utf8, AcceptsExactlyTheWellFormed) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8(std::string_view("\0 é 你 😀", 13)));
  EXPECT_FALSE(is_utf8("\xED\xA0\x80"));
  EXPECT_FALSE(is_utf8("caf\xC3"));
}

TEST(Utf8, BoundaryBytesDecodeByTheDefinitionForAnyCuts) {
  for (const char a : boundary_bytes) {
    for (const char b : boundary_bytes) {
      for (const char c : boundary_bytes) {
        for (const char d : boundary_bytes) {
          const std::string bytes = {a, b, c, d};
          const std::string wanted = definition().lossy(bytes);
          ASSERT_EQ(to_utf8_lossy(bytes), wanted);
          ASSERT_EQ(streamed(bytes, {1, 2, 3}), wanted);
          ASSERT_EQ(streamed(bytes, {2}), wanted);
          ASSERT_EQ(streamed(bytes, {1, 3}), wanted);
        }
      }
    }
  }
}

TEST(Utf8, RandomBytesDecodeByTheDefinitionHoweverTheStreamIsCut) {
  std::mt19937 random(1);
  const auto below = [&](std::size_t n) { return random() % n; };
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    for (std::size_t parts = below(12); parts > 0; --parts) {
      switch (below(3)) {
        case 0:
          bytes += boundary_bytes[below(boundary_bytes.size())];
          break;
        case 1:
          bytes += static_cast<char>(below(256));
          break;
        default:
          bytes += encode(static_cast<char32_t>(below(0xD800)));
      }
    }
    if (!bytes.empty() && below(2) == 0) bytes.erase(below(bytes.size()), 1);
    const std::string wanted = definition().lossy(bytes);
    ASSERT_EQ(to_utf8_lossy(bytes), wanted);
    std::vector<std::size_t> cuts;
    for (std::size_t at = 0; at <= bytes.size(); ++at) {
      if (below(2) == 0) cuts.push_back(at);
    }
    ASSERT_EQ(streamed(bytes, cuts), wanted);
  }
}

TEST(Utf8Stream, KeepsBackOnlyATruncatedCharacter) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xE4"), "a");
  EXPECT_EQ(stream.push("\xBD"), "");
  EXPECT_EQ(stream.push("\xA0\xE5"), "你");
  EXPECT_EQ(stream.push("x"), "\uFFFDx");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, CanBeUsedAgainAfterFinish) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xF0\x9F\x98"), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.push("\x80"), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

}  // namespace
}  // namespace minimind
