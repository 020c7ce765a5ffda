#include "runtime/constraint/grammar_constraint.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/grammar/gbnf.h"
#include "runtime/grammar/state.h"
#include "runtime/tokenizer/files.h"
#include "runtime/tokenizer/tokenizer.h"

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
  const GrammarConstraint constraint(grammar, make_token_trie(tokenizer), tokenizer, vocab_size, {}, 10);
  ASSERT_EQ(constraint.allowed().size(), vocab_size);
  EXPECT_TRUE(constraint.allowed()[static_cast<std::size_t>(tokenizer.encode("a").front())]);
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

}  // namespace
}  // namespace minimind
