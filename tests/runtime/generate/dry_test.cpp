#include "runtime/generate/dry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/golden_engine.h"

namespace minimind {
namespace {

using Penalties = std::map<std::int32_t, double>;

DryOptions on(std::vector<std::string> breakers = {}) {
  DryOptions options;
  options.multiplier = 0.5;
  options.base = 2;
  options.sequence_breakers = std::move(breakers);
  return options;
}

Penalties penalties_after(const DryOptions& options, const Tokens& tokens, const std::vector<std::string>& texts = {}) {
  Dry dry(options, texts);
  for (const std::int32_t token : tokens) dry.accept(token);
  Penalties result;
  for (const auto& [token, bias] : dry.penalties()) EXPECT_TRUE(result.emplace(token, -bias).second) << token;
  return result;
}

TEST(Dry, PenaltiesGrowWithTheRepetition) {
  EXPECT_EQ(penalties_after(on(), {1, 2, 3, 9, 1, 2}), (Penalties{{3, 0.5}})) << "1 2 was followed by 3";
  EXPECT_EQ(penalties_after(on(), {0, 1, 2, 3, 9, 0, 1, 2}), (Penalties{{3, 1.0}}));
  EXPECT_EQ(penalties_after(on(), {1, 2, 3, 9, 0, 2}), Penalties{}) << "one token is shorter than the allowed length";
  EXPECT_EQ(penalties_after(on(), {1, 2, 3, 4, 5}), Penalties{});
}

TEST(Dry, OfSeveralRepetitionsTheLongestCounts) {
  EXPECT_EQ(penalties_after(on(), {1, 2, 3, 8, 0, 1, 2, 3, 9, 1, 2, 4, 7, 0, 1, 2}), (Penalties{{3, 1.0}, {4, 0.5}}));
}

TEST(Dry, TheAllowedLengthIsTheFirstThatCosts) {
  DryOptions options = on();
  options.allowed_length = 3;
  EXPECT_EQ(penalties_after(options, {1, 2, 3, 9, 1, 2}), Penalties{});
  EXPECT_EQ(penalties_after(options, {0, 1, 2, 3, 9, 0, 1, 2}), (Penalties{{3, 0.5}}));
}

TEST(Dry, LooksBackAtMostPenaltyLastN) {
  DryOptions options = on();
  options.penalty_last_n = 5;
  EXPECT_EQ(penalties_after(options, {1, 2, 3, 9, 1, 2}), Penalties{}) << "the window is 2 3 9 1 2";
  options.penalty_last_n = 6;
  EXPECT_EQ(penalties_after(options, {1, 2, 3, 9, 1, 2}), (Penalties{{3, 0.5}}));
  options.penalty_last_n = 0;
  EXPECT_EQ(penalties_after(options, {1, 2, 3, 9, 1, 2}), Penalties{});
}

TEST(Dry, NoRepetitionReachesAcrossABreaker) {
  const std::vector<std::string> texts{"a", "b", "c", ":\n", "x", "--", "->"};
  EXPECT_EQ(penalties_after(on({":"}), {0, 1, 3, 0, 1, 2, 4, 0, 1, 3, 0, 1}, texts), (Penalties{{2, 0.5}}));
  EXPECT_EQ(penalties_after(on({":"}), {0, 1, 3, 2, 4, 0, 1, 3}, texts), Penalties{}) << "nothing has come since";
  EXPECT_EQ(penalties_after(on({":"}), {0, 1, 3, 4, 0, 1}, texts), Penalties{}) << "a breaker itself is free";
  EXPECT_EQ(penalties_after(on({"--->"}), {0, 1, 5, 6, 2, 4, 0, 1, 5, 6}, texts), Penalties{}) << "over two tokens";
  EXPECT_EQ(penalties_after(on({"--->"}), {0, 1, 5, 2, 4, 0, 1, 5}, texts), (Penalties{{2, 1.0}}));
}

TEST(Dry, ALongRepetitionHasALargeFinitePenalty) {
  const Penalties penalties = penalties_after(
      [] {
        DryOptions options = on();
        options.penalty_last_n = 5000;
        return options;
      }(),
      Tokens(5000, 1));
  ASSERT_EQ(penalties.size(), 1u);
  EXPECT_GT(penalties.at(1), 1e60);
  EXPECT_TRUE(std::isfinite(penalties.at(1)));
}

// The definition in dry.h, word by word.
Penalties by_definition(const DryOptions& options, const Tokens& all, const std::vector<std::string>& texts) {
  const Tokens tokens(
      all.end() - std::ssize(all) +
          std::max<std::ptrdiff_t>(0, std::ssize(all) - static_cast<std::ptrdiff_t>(options.penalty_last_n)),
      all.end());
  std::string text;
  std::vector<std::size_t> begins;
  for (const std::int32_t token : all) {
    begins.push_back(text.size());
    text += texts[static_cast<std::size_t>(token)];
  }
  std::size_t broken_until = 0;
  for (const std::string& breaker : options.sequence_breakers) {
    const std::size_t at = text.rfind(breaker);
    if (at != std::string::npos) broken_until = std::max(broken_until, at + breaker.size());
  }
  std::size_t limit = 0;
  while (limit < all.size() && begins[all.size() - 1 - limit] >= broken_until) ++limit;
  Penalties result;
  if (tokens.size() <= options.allowed_length) return result;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::size_t n = 0;
    while (n < i && n < limit && tokens[i - 1 - n] == tokens[tokens.size() - 1 - n]) ++n;
    const std::string& its_text = texts[static_cast<std::size_t>(tokens[i])];
    const bool breaks =
        std::any_of(options.sequence_breakers.begin(), options.sequence_breakers.end(),
                    [&](const std::string& breaker) { return its_text.find(breaker) != std::string::npos; });
    if (i == 0 || n < options.allowed_length || breaks) continue;
    double& amount = result[tokens[i]];
    amount =
        std::max(amount, options.multiplier * std::pow(options.base, static_cast<double>(n - options.allowed_length)));
  }
  return result;
}

TEST(Dry, EqualsItsDefinition) {
  const std::vector<std::string> texts{"a", "b", "ab", "-", "->", "b-"};
  std::mt19937 random(1);
  std::size_t penalised = 0;
  for (int run = 0; run < 2000; ++run) {
    DryOptions options = on(run % 3 == 0 ? std::vector<std::string>{} : std::vector<std::string>{"-->", "bb"});
    options.allowed_length = 1 + random() % 3;
    options.penalty_last_n = 4 + random() % 40;
    Tokens tokens(random() % 50);
    for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random() % texts.size());
    const Penalties wanted = by_definition(options, tokens, texts);
    penalised += wanted.size();
    ASSERT_EQ(penalties_after(options, tokens, texts), wanted) << "run " << run;
  }
  EXPECT_GT(penalised, 1000u);
}

}  // namespace
}  // namespace minimind
