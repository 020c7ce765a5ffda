#include "runtime/constraint/least_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/constraint/grammar_constraint.h"
#include "runtime/grammar/gbnf.h"
#include "runtime/tokenizer/files.h"
#include "tests/support/forgetful_constraint.h"

namespace minimind {
namespace {

const Tokenizer& demo_tokenizer() {
  static const Tokenizer tokenizer = load_tokenizer(MINIMIND_SOURCE_DIR "/weights/demo");
  return tokenizer;
}

std::unique_ptr<Constraint> constraint(std::size_t least, MakeConstraint other) {
  static const std::vector<std::int32_t> ends{*demo_tokenizer().eos_id(), 1'000'000};
  return with_least_tokens(least, std::move(other))({demo_tokenizer(), demo_tokenizer().vocab_size(), ends, 100});
}

bool allows_end(Constraint& constraint) {
  const auto allowed = constraint.allowed();
  return allowed.empty() || allowed[static_cast<std::size_t>(*demo_tokenizer().eos_id())] != 0;
}

TEST(LeastTokens, EndTokensComeAfterThem) {
  const auto least = constraint(2, nullptr);
  const std::int32_t a = demo_tokenizer().encode("a").front();
  for (std::size_t left = 100; left > 98; --left) {
    EXPECT_FALSE(allows_end(*least));
    EXPECT_EQ(std::ranges::count(least->allowed(), 0), 1) << "every other token may come";
    least->accept(a, left - 1);
  }
  EXPECT_TRUE(least->allowed().empty());
  EXPECT_FALSE(least->finished());
  EXPECT_TRUE(least->conforms("aa"));
}

TEST(LeastTokens, AnotherConstraintForgets) {
  int forgotten = 0;
  const auto least =
      constraint(2, [&](const UnconstrainedText&) { return std::make_unique<ForgetfulConstraint>(forgotten); });
  least->forget();
  EXPECT_EQ(forgotten, 1);
}

TEST(LeastTokens, AnotherConstraintHoldsAndMayEndTheTextEarlier) {
  const auto grammar = [](const char* text) {
    return constrain_to(std::make_shared<const Grammar>(parse_grammar(text, "g.gbnf")));
  };
  const std::int32_t a = demo_tokenizer().encode("a").front(), b = demo_tokenizer().encode("b").front();
  const auto several = constraint(2, grammar("root ::= [a]+"));
  EXPECT_FALSE(several->allowed()[static_cast<std::size_t>(b)]);
  several->accept(a, 99);
  EXPECT_FALSE(allows_end(*several));
  several->accept(a, 98);
  EXPECT_TRUE(allows_end(*several));
  EXPECT_FALSE(several->conforms("ab"));
  const auto one = constraint(5, grammar("root ::= [a]"));
  one->accept(a, 99);
  EXPECT_TRUE(allows_end(*one) || one->finished());
}

}  // namespace
}  // namespace minimind
