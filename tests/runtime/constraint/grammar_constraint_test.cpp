#include "runtime/constraint/grammar_constraint.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/grammar/gbnf.h"
#include "runtime/grammar/state.h"
#include "runtime/json_schema/json_schema.h"
#include "runtime/tokenizer/files.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/runtime/constraint/random_schema.h"
#include "tests/support/cases.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

TEST(GrammarConstraint, AllowsTheTokensWhoseTextsTheGrammarAllows) {
  const Tokenizer tokenizer = load_tokenizer(MINIMIND_SOURCE_DIR "/weights/demo");
  const auto grammar = std::make_shared<const Grammar>(
      parse_grammar("root ::= ([一-龥]{1,4} [，。] \"\\n\"?){2,} | \"{\" [^}]{0,3} \"}\"", "g.gbnf"));
  const std::vector<std::int32_t> end{*tokenizer.eos_id()};
  const std::size_t vocab_size = tokenizer.vocab_size() + 7;  // a model may have ids without a token
  GrammarConstraint constraint(grammar, make_token_trie(tokenizer), tokenizer, vocab_size, end, 1000);
  GrammarState state(grammar);
  for (const std::string text : {"", "春", "山。", "水，", "\n", "云", "。"}) {
    if (!text.empty()) {
      const std::vector<std::int32_t> ids = tokenizer.encode(text);
      for (const std::int32_t id : ids) constraint.accept(id, 1000);
      ASSERT_TRUE(state.advance(text));
    }
    for (std::size_t i = 0; i < vocab_size; ++i) {
      const auto id = static_cast<std::int32_t>(i);
      const std::string_view bytes = tokenizer.token_bytes(id);
      const bool is_end = id == end.front();
      const bool wanted = is_end ? state.may_end() : !bytes.empty() && !tokenizer.is_special(id) && state.allows(bytes);
      ASSERT_EQ(constraint.allowed()[i] != 0, wanted) << "token " << id << " after " << text;
    }
  }
}

TEST(GrammarConstraint, NeverTakesAnEndTokenForText) {
  const Tokenizer tokenizer = load_tokenizer(MINIMIND_SOURCE_DIR "/weights/demo");
  const auto grammar = std::make_shared<const Grammar>(parse_grammar("root ::= [ab]+", "g.gbnf"));
  const std::int32_t a = tokenizer.encode("a").front(), b = tokenizer.encode("b").front();
  GrammarConstraint constraint(grammar, make_token_trie(tokenizer), tokenizer, tokenizer.vocab_size(), std::vector{b},
                               10);
  EXPECT_FALSE(constraint.allowed()[static_cast<std::size_t>(b)]) << "the empty text may not end";
  constraint.accept(a, 9);
  EXPECT_TRUE(constraint.allowed()[static_cast<std::size_t>(b)]);
}

TEST(GrammarConstraint, HasTheTokensOfASmallerModel) {
  const Tokenizer tokenizer = load_tokenizer(MINIMIND_SOURCE_DIR "/weights/demo");
  const auto grammar = std::make_shared<const Grammar>(parse_grammar("root ::= [ab]+", "g.gbnf"));
  const auto vocab_size = static_cast<std::size_t>(tokenizer.encode("b").front());
  GrammarConstraint constraint(grammar, make_token_trie(tokenizer), tokenizer, vocab_size, {}, 10);
  ASSERT_EQ(constraint.allowed().size(), vocab_size);
  EXPECT_TRUE(constraint.allowed()[static_cast<std::size_t>(tokenizer.encode("a").front())]);
}

// A tokenizer with the tokens "x" and "y", and an id between them without a text.
Tokenizer tokenizer_with_a_gap() {
  TokenizerData data;
  data.source = "test.json";
  data.vocab = {{"x", 0}, {"y", 2}};
  return Tokenizer(data);
}

TEST(GrammarConstraint, ReportsAVocabularyThatCannotContinueTheText) {
  const Tokenizer tokenizer = tokenizer_with_a_gap();
  const auto grammar = std::make_shared<const Grammar>(parse_grammar("root ::= \"x\" (\"z\" | \"yz\")", "g.gbnf"));
  GrammarConstraint constraint(grammar, make_token_trie(tokenizer), tokenizer, tokenizer.vocab_size(), {}, 10);
  EXPECT_EQ(std::vector(constraint.allowed().begin(), constraint.allowed().end()),
            (std::vector<std::uint8_t>{1, 0, 0}));
  constraint.accept(0, 9);
  EXPECT_TRUE(constraint.allowed()[2]);
  constraint.accept(2, 8);
  EXPECT_THROW(constraint.allowed(), Error);
  EXPECT_FALSE(constraint.conforms("xyz")) << "it has failed";
  EXPECT_THROW(constraint.allowed(), std::logic_error);
}

TEST(GrammarConstraint, ATokenThatIsNotAllowedIsAMistakeOfTheCaller) {
  const Tokenizer tokenizer = tokenizer_with_a_gap();
  const auto grammar = std::make_shared<const Grammar>(parse_grammar("root ::= \"x\"", "g.gbnf"));
  GrammarConstraint constraint(grammar, make_token_trie(tokenizer), tokenizer, tokenizer.vocab_size(), {}, 10);
  constraint.accept(2, 9);
  EXPECT_THROW(constraint.allowed(), std::logic_error);
}

TEST(GrammarConstraint, NoGrammarConstrainsNothing) {
  EXPECT_EQ(constrain_to(nullptr, nullptr, std::nullopt), nullptr);
}

TEST(GrammarConstraint, TextsCanShareATrie) {
  const Tokenizer tokenizer = load_tokenizer(MINIMIND_SOURCE_DIR "/weights/demo");
  const auto trie = make_token_trie(tokenizer);
  const auto of = [&](const char* text) { return std::make_shared<const Grammar>(parse_grammar(text, "g.gbnf")); };
  const std::int32_t a = tokenizer.encode("a").front(), b = tokenizer.encode("b").front();
  GrammarConstraint of_a(of("root ::= [a]+"), trie, tokenizer, tokenizer.vocab_size(), {}, 10);
  GrammarConstraint of_b(of("root ::= [b]+"), trie, tokenizer, tokenizer.vocab_size(), std::vector{a}, 10);
  of_b.accept(b, 9);
  of_a.accept(a, 9);
  EXPECT_EQ(trie.use_count(), 3);
  EXPECT_TRUE(of_a.allowed()[static_cast<std::size_t>(a)]);
  EXPECT_FALSE(of_a.allowed()[static_cast<std::size_t>(b)]);
  EXPECT_TRUE(of_b.allowed()[static_cast<std::size_t>(a)]) << "an end token, after a complete text";
  EXPECT_TRUE(of_b.allowed()[static_cast<std::size_t>(b)]);
}

TEST(GrammarConstraint, LeavesRoomToComeToTheEnd) {
  const Tokenizer tokenizer = load_tokenizer(MINIMIND_SOURCE_DIR "/weights/demo");
  const auto grammar = std::make_shared<const Grammar>(parse_grammar("root ::= \"(\" [a-z]* \"))\"", "g.gbnf"));
  const std::int32_t open = tokenizer.encode("(").front(), a = tokenizer.encode("a").front(),
                     close = tokenizer.encode(")").front();
  GrammarConstraint constraint(grammar, make_token_trie(tokenizer), tokenizer, tokenizer.vocab_size(), {}, 4);
  constraint.accept(open, 3);
  EXPECT_TRUE(constraint.allowed()[static_cast<std::size_t>(a)]);
  constraint.accept(a, 2);
  EXPECT_FALSE(constraint.allowed()[static_cast<std::size_t>(a)]) << "two brackets for two tokens";
  EXPECT_TRUE(constraint.allowed()[static_cast<std::size_t>(close)]);
  GrammarConstraint too_late(grammar, make_token_trie(tokenizer), tokenizer, tokenizer.vocab_size(), {}, 1);
  EXPECT_TRUE(too_late.allowed()[static_cast<std::size_t>(open)]) << "what cannot be complete is begun all the same";
}

// Takes random tokens of those that are allowed, at most `limit`, and returns their text.
std::string random_text(GrammarConstraint& constraint, const Tokenizer& tokenizer, std::size_t limit,
                        std::mt19937& random) {
  constraint.restart(limit);
  std::string text;
  while (limit > 0 && !constraint.finished()) {
    std::vector<std::int32_t> tokens;
    for (std::size_t i = 0; i < constraint.allowed().size(); ++i) {
      if (constraint.allowed()[i] != 0) tokens.push_back(static_cast<std::int32_t>(i));
    }
    if (tokens.empty()) break;
    const std::int32_t token = tokens[random() % tokens.size()];
    text += tokenizer.token_bytes(token);
    constraint.accept(token, --limit);
  }
  return text;
}

TEST(GrammarConstraint, ATextWithRoomForItsShortestTokensEndsWhole) {
  const Tokenizer tokenizer = load_tokenizer(MINIMIND_SOURCE_DIR "/weights/demo");
  const auto trie = make_token_trie(tokenizer);
  std::string letters;
  for (const char* const word : {"international", "development", "information", "the", "and", "ing"}) letters += word;
  const nlohmann::ordered_json schema{
      {"properties", {{"a", {{"type", "string"}}}, {"b", {{"const", letters + letters}}}}}, {"required", {"a", "b"}}};
  const auto grammar =
      std::make_shared<const Grammar>(compile_json_schema(schema, "s", {.closed = true, .references = {}}).grammar);
  GrammarConstraint constraint(grammar, trie, tokenizer, tokenizer.vocab_size(), {}, 1);
  const std::size_t least = constraint.most_tokens_to_end();
  const std::string shortest = nlohmann::ordered_json{{"a", ""}, {"b", letters + letters}}.dump();
  EXPECT_LE(least, tokenizer.encode(shortest).size());
  EXPECT_LT(least, shortest.size());
  std::mt19937 random(1);
  for (const std::size_t limit : {least, least + 1, least + 9, shortest.size() - 1, 2 * shortest.size()}) {
    const std::string text = random_text(constraint, tokenizer, limit, random);
    EXPECT_TRUE(constraint.conforms(text)) << limit << ": " << text;
  }
}

TEST(GrammarConstraint, RandomSchemasEndWholeWithinAnyLimit) {
  const Tokenizer tokenizer = load_tokenizer(MINIMIND_SOURCE_DIR "/weights/demo");
  const auto trie = make_token_trie(tokenizer);
  std::mt19937 random(1);
  std::size_t in_fewer_tokens = 0;
  for (unsigned seed = 0; seed < cases(300); ++seed) {
    const nlohmann::ordered_json value = RandomSchema(seed).make();
    const nlohmann::ordered_json schema{{"type", "object"},
                                        {"properties", {{"a", value}, {"b", {{"const", "白日依山尽，黄河入海流。"}}}}},
                                        {"required", {"a", "b"}},
                                        {"$defs", value["$defs"]}};
    const auto grammar = std::make_shared<const Grammar>(
        compile_json_schema(schema, "s", {.closed = seed % 2 == 0, .references = {}}).grammar);
    GrammarConstraint constraint(grammar, trie, tokenizer, tokenizer.vocab_size(), {}, 1);
    const std::size_t least = constraint.most_tokens_to_end();
    in_fewer_tokens += least < GrammarState(grammar).bytes_to_end() ? 1 : 0;
    for (const std::size_t limit : {least, least + 3, 2 * least}) {
      const std::string text = random_text(constraint, tokenizer, limit, random);
      EXPECT_TRUE(constraint.conforms(text)) << limit << ": " << schema << "\n" << text;
    }
  }
  EXPECT_EQ(in_fewer_tokens, cases(300));
}

TEST(GrammarConstraint, ALongEndIsMeasuredInPartsAndIsExact) {
  const Tokenizer tokenizer = load_tokenizer(MINIMIND_SOURCE_DIR "/weights/demo");
  std::string text;
  for (std::size_t i = 0; text.size() < 4'000; ++i) text += "白日依山尽" + std::to_string(i);
  const auto grammar = std::make_shared<const Grammar>(parse_grammar("root ::= \"" + text + "\"", "g.gbnf"));
  const std::size_t tokens = tokenizer.encode(text).size();
  for (const std::size_t limit : {tokens, tokens + 1}) {
    GrammarConstraint constraint(grammar, make_token_trie(tokenizer), tokenizer, tokenizer.vocab_size(), {}, limit);
    std::size_t parts = 1;
    while (!constraint.prepare()) ++parts;
    EXPECT_GT(parts, 5U);
    EXPECT_LE(constraint.most_tokens_to_end(), tokens);
    std::mt19937 random(1);
    EXPECT_EQ(random_text(constraint, tokenizer, limit, random), text);
  }
}

TEST(GrammarConstraint, OnlyTokensThatMayComeCountForAnEnd) {
  const Tokenizer tokenizer = load_tokenizer(MINIMIND_SOURCE_DIR "/weights/demo");
  const auto grammar = std::make_shared<const Grammar>(parse_grammar("root ::= \"春风\"", "g.gbnf"));
  const auto least = [&](std::size_t vocab_size, std::vector<std::int32_t> end) {
    return GrammarConstraint(grammar, make_token_trie(tokenizer), tokenizer, vocab_size, end, 1).most_tokens_to_end();
  };
  const std::vector<std::int32_t> ids = tokenizer.encode("春风");
  EXPECT_EQ(least(tokenizer.vocab_size(), {}), ids.size());
  EXPECT_GT(least(tokenizer.vocab_size(), {ids.front()}), ids.size());
  EXPECT_GT(least(static_cast<std::size_t>(ids.front()), {}), ids.size());
}

}  // namespace
}  // namespace minimind
