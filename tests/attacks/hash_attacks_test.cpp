#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/json_schema/json_schema.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/support/attack.h"
#include "tests/support/cases.h"
#include "weights/io/json_fields.h"

// Texts that share a bucket of every hash table. README.md in this folder lists them.
namespace minimind {
namespace {

constexpr std::uint64_t multiplier = 0xc6a4a7935bd1e995u;  // of MurmurHash64A, which is std::hash of libstdc++

constexpr std::uint64_t inverse_of(std::uint64_t odd) {
  std::uint64_t inverse = odd;
  for (int i = 0; i < 5; ++i) inverse *= 2 - odd * inverse;  // doubles the correct bits
  return inverse;
}

constexpr std::uint64_t shift_mix(std::uint64_t value) {
  return value ^ (value >> 47);  // which is its own inverse
}

bool is_plain(std::uint64_t block) {
  for (int i = 0; i < 8; ++i) {
    const auto byte = static_cast<unsigned char>(block >> (8 * i));
    if (byte <= ' ' || byte > '~' || byte == '"' || byte == '\\') return false;
  }
  return true;
}

// Different texts of 16 printable characters with one value of std::hash: for any first half there is one second half.
std::vector<std::string> colliding_texts(std::size_t count) {
  constexpr std::uint64_t inverse = inverse_of(multiplier);
  std::vector<std::string> texts;
  for (std::uint64_t number = 0; texts.size() < count; ++number) {
    std::uint64_t first = 0;
    for (int i = 0; i < 8; ++i) first |= ('A' + (number >> (4 * i) & 15)) << (8 * i);
    const std::uint64_t start = 0xc70f6907u ^ (16 * multiplier);
    const std::uint64_t after_first = (start ^ (shift_mix(first * multiplier) * multiplier)) * multiplier;
    const std::uint64_t second = shift_mix(after_first * inverse) * inverse;  // the hash is 0 before its end
    if (!is_plain(second)) continue;
    std::string text(16, ' ');
    std::memcpy(text.data(), &first, 8);
    std::memcpy(text.data() + 8, &second, 8);
    texts.push_back(text);
  }
  return texts;
}

class HashAttack : public testing::Test {
 protected:
  void SetUp() override {
    if (std::hash<std::string>()(texts_.front()) != std::hash<std::string>()(texts_.back())) {
      GTEST_SKIP() << "the standard library has another hash";
    }
  }

  const std::vector<std::string> texts_ = colliding_texts(cases(40'000, 8));
};

TEST_F(HashAttack, TokensOfOneHash) {
  TokenizerData data;
  data.source = "tokenizer.json";
  for (std::size_t i = 0; i < texts_.size(); ++i) data.vocab.emplace_back(texts_[i], static_cast<std::int32_t>(i));
  expect_harmless([&] { Tokenizer tokenizer(data); });
}

TEST_F(HashAttack, PropertiesOfOneHash) {
  std::string properties, required;
  for (const std::string& text : texts_) {
    properties += (properties.empty() ? "\"" : ",\"") + text + "\":true";
    required += (required.empty() ? "\"" : ",\"") + text + "\"";
  }
  const auto schema = parse_json<nlohmann::ordered_json>(
      R"({"type":"object","properties":{)" + properties + R"(},"required":[)" + required + "]}", "schema", 100,
      "a schema");
  expect_harmless([&] { compile_json_schema(schema, "schema"); });
}

}  // namespace
}  // namespace minimind
