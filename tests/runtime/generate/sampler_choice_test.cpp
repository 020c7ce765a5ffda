// Which tokens a Sampler may draw at all: biases, what is allowed, typical-p, penalties of the caller.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/generate/check_sampling.h"
#include "runtime/generate/sampler.h"
#include "tests/support/temporary_file.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

using Floats = std::vector<float>;
using Drawn = std::set<std::int32_t>;
using Allowed = std::vector<std::uint8_t>;

Drawn drawn(const SamplingOptions& options, const Floats& logits, const Allowed& allowed = {},
            const std::vector<std::int32_t>& generated = {}) {
  Sampler sampler(options, logits.size());
  for (const std::int32_t token : generated) sampler.accept(token);
  Drawn tokens;
  for (int i = 0; i < 2000; ++i) tokens.insert(sampler.sample(logits, allowed));
  return tokens;
}

TEST(Sampler, DrawsOnlyWhatIsAllowedAndCutsAmongThat) {
  SamplingOptions options = sampling_off();
  const Floats logits{9, 1, 1, 1, 0.5f};
  EXPECT_EQ(drawn(options, logits, {0, 1, 0, 1, 1}), (Drawn{1, 3, 4}));
  options.top_k = 2;
  EXPECT_EQ(drawn(options, logits, {0, 1, 0, 1, 1}), (Drawn{1, 3}));
  options.temperature = 0;
  EXPECT_EQ(drawn(options, logits, {0, 0, 0, 1, 1}), (Drawn{3}));
  EXPECT_EQ(drawn(options, logits), (Drawn{0}));
}

// The draws of a sampler with top-k alone, from the definition.
std::vector<std::int32_t> drawn_by_definition(const SamplingOptions& options, const Floats& logits, std::size_t count) {
  std::vector<std::int32_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto logit = [&](std::int32_t token) { return logits[static_cast<std::size_t>(token)]; };
  std::ranges::stable_sort(tokens, std::greater<>(), logit);
  const float least = logit(tokens[std::min(options.top_k, tokens.size()) - 1]);
  std::erase_if(tokens, [&](std::int32_t token) { return logit(token) < least; });
  std::vector<double> weights;
  for (const std::int32_t token : tokens) weights.push_back(std::exp(double{logit(token)} - double{logit(tokens[0])}));
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::mt19937_64 random(options.seed);
  std::vector<std::int32_t> drawn;
  while (drawn.size() < count) {
    double left = static_cast<double>(random() >> 11) * 0x1p-53;
    std::size_t i = 0;
    while (i + 1 < tokens.size() && (left -= weights[i] / sum) >= 0) ++i;
    drawn.push_back(tokens[i]);
  }
  return drawn;
}

TEST(Sampler, TopKOfLargeVocabulariesIsThatOfItsDefinition) {
  std::mt19937 random(3);
  for (const std::size_t vocab_size : {5, 255, 256, 257, 300, 6400}) {
    for (const std::size_t top_k : {1, 4, 15, 50, 500}) {
      if (top_k >= vocab_size) continue;
      Floats logits(vocab_size);
      // Many are equal, also to the k-th.
      for (float& logit : logits) logit = static_cast<float>(random() % 64) / 8 + (random() % 40 == 0 ? 3.0f : 0.0f);
      SamplingOptions options = sampling_off();
      options.top_k = top_k;
      options.seed = random();
      const std::vector<std::int32_t> expected = drawn_by_definition(options, logits, 50);
      // A bias of 0 changes no score.
      for (const std::vector<LogitBias>& biases : {std::vector<LogitBias>{}, std::vector<LogitBias>{{0, 0}}}) {
        options.logit_bias = biases;
        Sampler sampler(options, vocab_size);
        std::vector<std::int32_t> tokens;
        while (tokens.size() < 50) tokens.push_back(sampler.sample(logits));
        EXPECT_EQ(tokens, expected) << vocab_size << " tokens, top-k " << top_k << ", biases " << biases.size();
      }
    }
  }
}

TEST(Sampler, WhatIsAllAllowedIsDrawnAsIfNothingWasSaid) {
  const Floats logits{0.3f, 1, -2, 0.7f, 0.1f};
  SamplingOptions options;
  options.seed = 11;
  Sampler with(options, logits.size()), without(options, logits.size());
  const Allowed all(logits.size(), 1);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(with.sample(logits, all), without.sample(logits)) << i;
}

TEST(Sampler, NoAllowedTokenIsAnError) {
  for (const double temperature : {0.0, 1.0}) {
    SamplingOptions options = sampling_off();
    options.temperature = temperature;
    EXPECT_NE(error_of([&] { drawn(options, {1, 2}, {0, 0}); }).find("no token is left"), std::string::npos);
    options.logit_bias = {{0, -HUGE_VAL}};
    EXPECT_NE(error_of([&] { drawn(options, {1, 2}, {1, 0}); }).find("no token is left"), std::string::npos);
  }
}

TEST(Sampler, ABiasIsAddedBeforeTheTemperature) {
  SamplingOptions options = sampling_off();
  options.temperature = 0;
  options.logit_bias = {{1, 1.5}};
  EXPECT_EQ(drawn(options, {1, 0, 0}), (Drawn{1}));
  options.logit_bias = {{1, -0.5}, {2, 0.25}};
  EXPECT_EQ(drawn(options, {0, 0.4f, 0}), (Drawn{2}));
  // (1 + 1) / 0.5 = 4: more likely than 0 by e^4. Were the bias added later, e^3.
  options = sampling_off();
  options.temperature = 0.5;
  options.logit_bias = {{0, 1}};
  Sampler sampler(options, 2);
  int zeros = 0;
  constexpr int draws = 100'000;
  for (int i = 0; i < draws; ++i) zeros += sampler.sample(Floats{1, 0}) == 0;
  const double p = 1 / (1 + std::exp(-4.0));
  EXPECT_NEAR(zeros, draws * p, 5 * std::sqrt(draws * p * (1 - p))) << "five standard deviations";
}

TEST(Sampler, ScoresThatOnlyADoubleTellsApartAre) {
  SamplingOptions options = sampling_off();
  options.logit_bias = {{1, 1e-12}, {400, 2e-12}};
  const Floats logits(600, 7);
  options.temperature = 0;
  EXPECT_EQ(drawn(options, logits), (Drawn{400}));
  options.temperature = 1;
  options.top_k = 2;
  EXPECT_EQ(drawn(options, logits), (Drawn{1, 400}));
}

TEST(Sampler, ABiasOfMinusInfinityBans) {
  SamplingOptions options = sampling_off();
  options.logit_bias = {{0, -HUGE_VAL}};
  EXPECT_EQ(drawn(options, {50, 1, 1}), (Drawn{1, 2}));
  options.temperature = 0;
  EXPECT_EQ(drawn(options, {50, 1, 2}), (Drawn{2}));
}

TEST(Sampler, UnknownAndRepeatedBiasesAreUsageErrors) {
  SamplingOptions options = sampling_off();
  options.logit_bias = {{3, 1}};
  EXPECT_THROW(Sampler(options, 3), UsageError);
  options.logit_bias = {{1, 1}, {2, 1}, {1, 2}};
  EXPECT_NE(error_of([&] { check(options); }).find("logit_bias of token 1 is repeated"), std::string::npos);
  for (const double bad : {std::nan(""), HUGE_VAL, 1e7}) {
    options.logit_bias = {{1, bad}};
    EXPECT_THROW(check(options), UsageError) << bad;
  }
}

// Probabilities 0.5, 0.25, 0.125, 0.125: the entropy is 1.75 bits; surprises of 1, 2, 3 and 3 bits are 0.75, 0.25 and
// 1.25 from it.
TEST(Sampler, TypicalPKeepsWhatIsNearestToTheEntropy) {
  const Floats logits{static_cast<float>(std::log(4)), static_cast<float>(std::log(2)), 0, 0};
  SamplingOptions options = sampling_off();
  options.typical_p = 0.2;
  EXPECT_EQ(drawn(options, logits), (Drawn{1}));
  options.typical_p = 0.3;
  EXPECT_EQ(drawn(options, logits), (Drawn{0, 1}));
  options.typical_p = 0.8;
  EXPECT_EQ(drawn(options, logits), (Drawn{0, 1, 2}));
  options.typical_p = 0.9;
  EXPECT_EQ(drawn(options, logits), (Drawn{0, 1, 2, 3}));
  options.typical_p = 0.3;
  options.top_p = 0.6;
  EXPECT_EQ(drawn(options, logits), (Drawn{0})) << "top-p follows: 0.5 / 0.75 is more than 0.6";
}

TEST(Sampler, TypicalPSurvivesProbabilitiesOfNothing) {
  SamplingOptions options = sampling_off();
  options.typical_p = 0.5;
  EXPECT_EQ(drawn(options, {3e38f, -3e38f, 0}), (Drawn{0}));
}

TEST(Sampler, PenaltiesOfTheCallerAreAddedAfterItsOwnForOneTokenOnly) {
  SamplingOptions options = sampling_off();
  options.temperature = 0;
  options.repeat_penalty = 2;
  Sampler sampler(options, 3);
  sampler.accept(1);
  const Floats logits{0, 8, 3};
  const LogitBias enough{1, -1.5}, not_enough{1, -0.5};
  EXPECT_EQ(sampler.sample(logits), 1);
  EXPECT_EQ(sampler.sample(logits, {}, std::span(&enough, 1)), 2) << "8 / 2 - 1.5 is less than 3";
  EXPECT_EQ(sampler.sample(logits, {}, std::span(&not_enough, 1)), 1) << "8 / 2 - 0.5 is more than 3";
  EXPECT_EQ(sampler.sample(logits), 1) << "they hold for one token";
}

TEST(SamplingOptions, TheFirstTokenStaysIfTopPOrTypicalPIsZero) {
  const Floats logits{1, 2, 3};
  for (double SamplingOptions::*const p : {&SamplingOptions::top_p, &SamplingOptions::typical_p}) {
    SamplingOptions options = sampling_off();
    options.*p = 0;
    Sampler sampler(options, logits.size());
    const std::int32_t first = sampler.sample(logits);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(sampler.sample(logits), first);
  }
}

TEST(SamplingOptions, RejectsPenaltiesAndBiasesOutOfRangeNamingThem) {
  const auto refused = [](auto change, const std::string& name) {
    SamplingOptions options;
    change(options);
    EXPECT_THROW(check(options), UsageError) << name;
    EXPECT_TRUE(error_of([&] { check(options); }).starts_with(name)) << error_of([&] { check(options); });
  };
  for (const double bad : {1.1, -1.0, std::nan("")}) {
    refused([&](SamplingOptions& options) { options.typical_p = bad; }, "typical_p is ");
  }
  for (const double bad : {-1.0, HUGE_VAL, std::nan("")}) {
    refused([&](SamplingOptions& options) { options.dry.multiplier = bad; }, "dry_multiplier is ");
  }
  for (const double bad : {0.5, HUGE_VAL, std::nan("")}) {
    refused([&](SamplingOptions& options) { options.dry.base = bad; }, "dry_base is ");
  }
  refused([](SamplingOptions& options) { options.dry.sequence_breakers = {"a", ""}; }, "dry_sequence_breaker is empty");
}

}  // namespace
}  // namespace minimind
