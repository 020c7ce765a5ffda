#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/grammar/gbnf.h"
#include "runtime/grammar/state.h"
#include "runtime/grammar/token_trie.h"
#include "runtime/json_schema/json_schema.h"
#include "tests/support/cases.h"

namespace minimind {
namespace {

// Short and long tokens of every kind, and those that end a string.
std::vector<std::string> vocabulary() {
  std::vector<std::string> texts{"\"",   "\",",  "\":",      "\"}",     "\"]",      "a\"",          "Ab\",\"",  "{\"",
                                 "}",    "]",    ",",        ":",       ", \"",     "\\n",          "\\u00e9",  "\n",
                                 "1",    "12",   "\xE4\xBD", "a天\xE4", "\xE2\x80", "\xF0\x9F\x98", "-1.5",     "e+3",
                                 "@",    "a@b.", ".com",     "/",       "//",       "你",           "你好世界", "é",
                                 "\xE4", "\xBD", "😀",        "true",    "null,",    "[1,2",         "a b",      " A",
                                 "a#b",  "a?",   "#",        "?",       "天#"};
  for (const std::string_view word : {"a", "z", "9", "A", "aB1", "-", "_", "a-b", "天", " "}) {
    std::string text;
    for (int i = 0; i < 40; ++i) {
      text += word;
      if (i < 6 || i > 37) texts.push_back(text);
    }
  }
  return texts;
}

struct MaskCase {
  std::string schema, text;
};

class MaskTest : public testing::Test {
 protected:
  MaskTest() : texts_(vocabulary()), trie_(named()) {}

  std::vector<std::pair<std::string_view, std::int32_t>> named() const {
    std::vector<std::pair<std::string_view, std::int32_t>> result;
    for (std::size_t i = 0; i < texts_.size(); ++i) result.emplace_back(texts_[i], static_cast<std::int32_t>(i));
    return result;
  }

  // Each position is visited a few times, because masks are kept.
  void expect_masks(const std::shared_ptr<const Grammar>& grammar, const std::string& text) {
    GrammarState state(grammar), other(grammar);
    for (std::size_t at = 0; at <= text.size(); ++at) {
      for (const std::uint64_t spare :
           {Grammar::longest_text, std::uint64_t{3}, std::uint64_t{0}, Grammar::longest_text}) {
        state.restart();
        ASSERT_TRUE(state.advance(text.substr(0, at))) << text.substr(0, at);
        const std::uint64_t limit = spare == Grammar::longest_text ? spare : state.bytes_to_end() + spare;
        TokenBits allowed(token_words(texts_.size()));
        state.mark_allowed(trie_, allowed, limit);
        for (std::size_t token = 0; token < texts_.size(); ++token) {
          other.restart();
          const bool follows = other.advance(text.substr(0, at) + texts_[token]) && other.bytes_to_end() <= limit;
          ASSERT_EQ((allowed[token / 64] >> token % 64 & 1) != 0, follows)
              << text.substr(0, at) << " then " << texts_[token] << ", limit " << limit;
        }
      }
    }
  }

  // A text that has paused goes on as if it had not, also near its last token.
  void expect_same_after_forgetting(const std::shared_ptr<const Grammar>& grammar, const std::string& text) {
    GrammarState knows(grammar), forgets(grammar);
    for (GrammarState* const state : {&knows, &forgets}) {
      state->measure_ends_in(trie_, std::vector<bool>(texts_.size(), true));
    }
    for (std::size_t at = 0; at <= text.size(); ++at) {
      forgets.forget();
      for (GrammarState* const state : {&knows, &forgets}) {
        while (!state->measure_end()) continue;
      }
      const std::uint64_t end = knows.most_tokens_to_end();
      ASSERT_EQ(forgets.most_tokens_to_end(), end) << text.substr(0, at);
      for (const std::uint64_t limit : {Grammar::longest_text, end + 2, end, end - std::min<std::uint64_t>(end, 1)}) {
        TokenBits known(token_words(texts_.size())), anew = known;
        knows.mark_allowed(trie_, known, limit);
        forgets.forget();
        forgets.mark_allowed(trie_, anew, limit);
        ASSERT_EQ(known, anew) << text.substr(0, at) << ", limit " << limit;
      }
      for (GrammarState* const state : {&knows, &forgets}) {
        ASSERT_TRUE(at == text.size() || state->advance(text.substr(at, 1)));
      }
    }
  }

  std::vector<std::string> texts_;
  TokenTrie trie_;
};

TEST_F(MaskTest, AllowTheTokensThatCanFollow) {
  for (
      const MaskCase& c : {
          MaskCase{R"({"type": "string"})", R"("aB天 1")"},
          MaskCase{R"({"type": "string", "maxLength": 8})", R"("aB天 12-")"},
          MaskCase{R"({"type": "string", "minLength": 2, "maxLength": 41})", R"("aB天 12-")"},
          MaskCase{R"({"type": "string", "pattern": "^[a-z0-9_-]*$"})", R"("ab-9")"},
          MaskCase{R"({"type": "string", "pattern": "^[a-z0-9]{3,12}$"})", R"("abc9")"},
          MaskCase{R"({"type": "string", "pattern": "^[a-z]*-[A-Za-z]*$", "maxLength": 9})", R"("ab-cdEf")"},
          MaskCase{R"({"type": "string", "pattern": "^(/[^/]+)+$"})", R"("/ab/天")"},
          MaskCase{R"({"type": "string", "pattern": "^[^/#]+#[0-9]*$"})", R"("a天?#1")"},
          MaskCase{R"({"type": "string", "pattern": "^([^ 天]+ )*$"})", R"("aé #b ")"},
          MaskCase{R"({"type": "string", "format": "email"})", R"("a.b@c.de")"},
          MaskCase{R"({"type": "string", "not": {"enum": ["aa", "天天"]}, "maxLength": 6})", R"("aa天")"},
          MaskCase{
              R"({"properties": {"a": {"type": "string", "maxLength": 3}}, "additionalProperties": {"type": "number"}})",
              R"({"a":"b","ab":1.5})"},
          MaskCase{R"({"anyOf": [{"type": "string", "maxLength": 3}, {"type": "string", "pattern": "^a"}]})",
                   R"("abc1")"},
          MaskCase{R"({"anyOf": [{"type": "string", "maxLength": 5}, {"type": "string", "pattern": "^天{8}$"}]})",
                   R"("天天天天天天天)"},
          MaskCase{R"({"anyOf": [{"maxLength": 3, "minLength": 2}, {"maxLength": 7, "minLength": 6}]})",
                   R"("aB天 1-")"},
      }) {
    for (const bool closed : {true, false}) {
      JsonSchemaOptions options;
      options.closed = closed;
      const auto schema = nlohmann::ordered_json::parse(c.schema);
      SCOPED_TRACE(c.schema + (closed ? " closed" : " open"));
      const auto grammar = std::make_shared<const Grammar>(compile_json_schema(schema, "s", options).grammar);
      expect_masks(grammar, c.text);
      expect_same_after_forgetting(grammar, c.text);
    }
  }
  for (const MaskCase& c : {
           MaskCase{"root ::= \"\\\"\" [^\"]{0,7} \"\\\"\"", "\"aB天 12"},
           MaskCase{"root ::= [a-z0-9]{2,30} | [A-Z]*", "ab9"},
           MaskCase{"root ::= ([a-z] | \"-\"? [0-9]){0,20} \"天\"", "a-9"},
       }) {
    SCOPED_TRACE(c.schema);
    const auto grammar = std::make_shared<const Grammar>(parse_grammar(c.schema, "g"));
    expect_masks(grammar, c.text);
    expect_same_after_forgetting(grammar, c.text);
  }
}

// Characters are counted in 32 bits: 65,541 of them are not 5.
TEST(TokenTrie, CountsTheCharactersOfALongText) {
  const std::string text(65541, 'a');
  const TokenTrie trie({{"a", 0}, {text, 1}});
  std::uint32_t height = 0;
  for (const TokenTrie::Part& part : trie.parts()) {
    height = std::max<std::uint32_t>(height, part.height);
    EXPECT_TRUE(part.height == 0 || part.of_length.size() == part.height + std::size_t{1});
  }
  EXPECT_EQ(height, text.size());
}

// Byte-level vocabularies have many: a string that may go on in any way takes them all at once.
TEST(TokenTrie, StartsOfCharactersAreAPart) {
  const TokenTrie trie({{"\xE4", 0}, {"a天\xE4\xBD", 1}, {"天", 2}, {"\xBD", 3}, {"\n\xE4", 4}, {"\xE4\"", 5}});
  const auto& cut = trie.parts()[static_cast<std::size_t>(TextKind::cut)];
  EXPECT_EQ(std::set<std::int32_t>(cut.tokens.begin(), cut.tokens.end()), (std::set<std::int32_t>{0, 1}));
}

TEST_F(MaskTest, AreTheSameForDistinctItemsAfterForgetting) {
  const auto schema =
      nlohmann::ordered_json::parse(R"({"type": "array", "uniqueItems": true, "items": {"type": "integer"}})");
  expect_same_after_forgetting(std::make_shared<const Grammar>(compile_json_schema(schema, "s").grammar), "[1,12,-1]");
}

// An item that is begun like one that is there already can be ended otherwise, whatever tokens are chosen; and no token
// is left out that a whole text has.
TEST(Masks, LeaveOutWhatDistinctItemsCouldOnlyRepeat) {
  const std::vector<std::string> texts{"0",  "1",    "2",     "3",      "9",  "12",     "a",      "b",   "ab",
                                       "k",  "\"",   "\",",   "\"a",    ",",  ", ",     "[",      "]",   "{",
                                       "}",  "},",   "\"k\"", "\"k\":", ":",  "-",      ".",      "e",   " ",
                                       "\n", "null", "true",  " \n",    "1,", "\"ab\"", "\", \"", "],[", "\\"};
  std::vector<std::pair<std::string_view, std::int32_t>> named;
  for (std::size_t i = 0; i < texts.size(); ++i) named.emplace_back(texts[i], static_cast<std::int32_t>(i));
  const TokenTrie trie(named);
  for (
      const char* const rest : {
          R"("items": {"type": "string"}, "minItems": 3)",
          R"("items": {"pattern": "^[ab]{1,2}$", "type": "string"}, "minItems": 6)",
          R"("items": {"enum": [1, 2, 3]}, "minItems": 3)",
          R"("items": {"enum": ["a", "ab", 1, null, true, 0.9]}, "minItems": 5)",
          R"("items": {"type": "integer", "minimum": 0, "maximum": 3}, "minItems": 3)",
          R"("items": {"type": "number", "minimum": -1, "maximum": 1}, "minItems": 3)",
          R"("prefixItems": [{"enum": ["a", "b"]}, {"enum": ["a", "b"]}, {"enum": ["a", "b", "ab"]}], "items": false,
              "minItems": 3)",
          R"("items": {"type": "object", "properties": {"k": {"enum": ["a", "b"]}}, "required": ["k"]}, "minItems": 2)",
          R"("items": {"type": "array", "items": {"enum": [1, 2]}, "minItems": 1, "maxItems": 2, "uniqueItems": true},
              "minItems": 4)",
      }) {
    const auto schema =
        nlohmann::ordered_json::parse("{\"type\": \"array\", \"uniqueItems\": true, " + std::string(rest) + "}");
    for (const JsonWhitespace whitespace : {JsonWhitespace::free, JsonWhitespace::fixed}) {
      JsonSchemaOptions options;
      options.closed = true;
      options.whitespace = whitespace;
      GrammarState state(std::make_shared<const Grammar>(compile_json_schema(schema, "s", options).grammar));
      for (unsigned seed = 0; seed < cases(80); ++seed) {
        std::mt19937 random(seed);
        const bool by_mask = seed % 2 == 0;  // otherwise any token that the text so far allows, as far as that leads
        state.restart();
        std::string text, left_out;
        for (int tokens = 0; tokens < 120 && !state.must_end(); ++tokens) {
          TokenBits allowed(token_words(texts.size()));
          state.mark_allowed(trie, allowed);
          const auto is_allowed = [&](std::size_t i) { return (allowed[i / 64] >> i % 64 & 1) != 0; };
          std::vector<std::size_t> possible;
          for (std::size_t i = 0; i < texts.size(); ++i) {
            if (by_mask ? is_allowed(i) : state.allows(texts[i])) possible.push_back(i);
          }
          if (possible.empty() && (state.may_end() || !by_mask)) break;
          ASSERT_FALSE(possible.empty()) << rest << "\n" << text;
          const std::size_t chosen = possible[random() % possible.size()];
          if (left_out.empty() && !is_allowed(chosen)) left_out = text + " then " + texts[chosen];
          ASSERT_TRUE(state.advance(texts[chosen])) << rest << "\n" << text << "\n" << texts[chosen];
          text += texts[chosen];
        }
        if (state.may_end()) {
          ASSERT_EQ(left_out, "") << rest << "\n" << text;
        }
      }
    }
  }
}

}  // namespace
}  // namespace minimind
