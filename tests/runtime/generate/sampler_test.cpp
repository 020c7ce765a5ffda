#include "runtime/generate/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "runtime/generate/check_sampling.h"
#include "tests/support/temporary_file.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

using Floats = std::vector<float>;
using Tokens = std::vector<std::int32_t>;

struct History {
  Tokens prompt, generated;
};

Sampler sampler_after(const SamplingOptions& options, std::size_t vocab_size, const History& history = {}) {
  Sampler sampler(options, vocab_size);
  for (const std::int32_t token : history.prompt) sampler.accept(token, false);
  for (const std::int32_t token : history.generated) sampler.accept(token);
  return sampler;
}

// The probabilities that sampler.h describes, word by word, in double.
class Reference {
 public:
  Reference(const SamplingOptions& options, const Floats& logits, const History& history)
      : options_(options), scores_(logits.begin(), logits.end()), kept_(logits.size(), true) {
    for (double& score : scores_) score /= options_.temperature;
    penalize(history);
    top_k();
    top_p();
    min_p();
  }

  std::vector<double> probabilities() const {
    std::vector<double> result(scores_.size());
    double sum = 0;
    for (std::size_t i = 0; i < scores_.size(); ++i) sum += result[i] = kept_[i] ? std::exp(scores_[i] - largest()) : 0;
    for (double& probability : result) probability /= sum;
    return result;
  }

 private:
  double largest() const { return *std::max_element(scores_.begin(), scores_.end()); }

  // The last tokens that penalties are for.
  History last(const History& all) const {
    const auto n = [&](const Tokens& tokens) { return std::min(tokens.size(), options_.repeat_last_n); };
    const auto last_of = [](const Tokens& tokens, std::size_t count) {
      return Tokens(tokens.end() - static_cast<std::ptrdiff_t>(count), tokens.end());
    };
    const std::size_t generated = n(all.generated);
    return {last_of(all.prompt, std::min(n(all.prompt), options_.repeat_last_n - generated)),
            last_of(all.generated, generated)};
  }

  void penalize(const History& all) {
    const History history = last(all);
    std::set<std::int32_t> seen(history.prompt.begin(), history.prompt.end());
    seen.insert(history.generated.begin(), history.generated.end());
    for (const std::int32_t token : seen) {
      double& score = scores_[static_cast<std::size_t>(token)];
      score = score > 0 ? score / options_.repeat_penalty : score * options_.repeat_penalty;
    }
    for (const std::int32_t token : std::set<std::int32_t>(history.generated.begin(), history.generated.end())) {
      const auto n = std::count(history.generated.begin(), history.generated.end(), token);
      scores_[static_cast<std::size_t>(token)] -=
          options_.presence_penalty + static_cast<double>(n) * options_.frequency_penalty;
    }
  }

  void top_k() {
    if (options_.top_k == 0 || options_.top_k >= scores_.size()) return;
    std::vector<double> sorted = scores_;
    std::sort(sorted.rbegin(), sorted.rend());
    for (std::size_t i = 0; i < scores_.size(); ++i) kept_[i] = scores_[i] >= sorted[options_.top_k - 1];
  }

  void top_p() {
    if (options_.top_p >= 1) return;
    const std::vector<double> probability = probabilities();
    std::vector<std::size_t> order(scores_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return probability[a] > probability[b]; });
    double sum = 0;
    for (const std::size_t i : order) {
      kept_[i] = kept_[i] && sum <= options_.top_p;
      sum += probability[i];
    }
  }

  void min_p() {
    const std::vector<double> probability = probabilities();
    const double top = *std::max_element(probability.begin(), probability.end());
    for (std::size_t i = 0; i < scores_.size(); ++i) kept_[i] = kept_[i] && probability[i] >= options_.min_p * top;
  }

  SamplingOptions options_;
  std::vector<double> scores_;
  std::vector<bool> kept_;
};

constexpr std::size_t draws = 100'000;

// Of n draws, a token of probability p comes n p times with the standard deviation sqrt(n p (1 - p)) of the binomial
// distribution; five of them are left by chance once in 1.7 million. The sampler's logits are f32, which moves p by a
// few 1e-7: less than one draw. A token that was cut must never come.
void expect_frequencies(const SamplingOptions& options, const Floats& logits, const History& history = {}) {
  const std::vector<double> wanted = Reference(options, logits, history).probabilities();
  Sampler sampler = sampler_after(options, logits.size(), history);
  std::vector<std::size_t> counts(logits.size());
  for (std::size_t i = 0; i < draws; ++i) ++counts[static_cast<std::size_t>(sampler.sample(logits))];
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const double p = wanted[token], mean = draws * p;
    const double bound = p > 0 ? 5 * std::sqrt(mean * (1 - p)) + 1 : 0;
    EXPECT_NEAR(static_cast<double>(counts[token]), mean, bound) << "token " << token << " of probability " << p;
  }
}

Floats random_logits(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 2);
  Floats logits(n);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

std::set<std::int32_t> tokens_drawn(const SamplingOptions& options, const Floats& logits, const History& history = {}) {
  Sampler sampler = sampler_after(options, logits.size(), history);
  std::set<std::int32_t> drawn;
  for (int i = 0; i < 2000; ++i) drawn.insert(sampler.sample(logits));
  return drawn;
}

using Drawn = std::set<std::int32_t>;

TEST(Sampler, TemperatureZeroTakesTheLargestLogitAndTheFirstOfEquals) {
  SamplingOptions options;
  options.temperature = 0;
  EXPECT_EQ(sampler_after(options, 4).sample(Floats{0.1f, 3, -5, 2.9f}), 1);
  EXPECT_EQ(sampler_after(options, 4).sample(Floats{-7, -7, -7.5f, -7}), 0);
  EXPECT_EQ(sampler_after(options, 1).sample(Floats{-1e30f}), 0);
}

TEST(Sampler, TemperatureZeroStillObeysPenalties) {
  SamplingOptions options;
  options.temperature = 0;
  options.repeat_penalty = 2;
  EXPECT_EQ(sampler_after(options, 3, {{1}, {}}).sample(Floats{2, 3, -1}), 0) << "3 / 2 is less than 2";
  EXPECT_EQ(sampler_after(options, 3, {{0}, {}}).sample(Floats{-2, -3, -9}), 1) << "-2 x 2 is less than -3";
}

TEST(Sampler, FrequenciesFollowSoftmax) {
  expect_frequencies(sampling_off(), random_logits(32, 1));
}

TEST(Sampler, FrequenciesFollowTheTemperature) {
  for (const double temperature : {0.25, 0.85, 3.0}) {
    SamplingOptions options = sampling_off();
    options.temperature = temperature;
    expect_frequencies(options, random_logits(32, 2));
  }
}

TEST(Sampler, FrequenciesFollowEveryCutAndPenaltyTogetherInTheirOrder) {
  const History history{{0, 3, 3, 7}, {1, 3, 1, 1, 12}};
  for (unsigned seed = 0; seed < 8; ++seed) {
    SamplingOptions options;
    options.temperature = 0.7 + 0.2 * seed;
    options.top_k = 12 + seed;
    options.top_p = 0.95 - 0.05 * seed;
    options.min_p = 0.01 * seed;
    options.repeat_penalty = 1.3;
    options.presence_penalty = 0.4;
    options.frequency_penalty = 0.2;
    options.seed = seed;
    expect_frequencies(options, random_logits(32, 100 + seed), history);
  }
}

TEST(Sampler, PenaltiesAreForTheLastTokens) {
  SamplingOptions options = sampling_off();
  options.repeat_penalty = 1.3;
  options.presence_penalty = 0.4;
  options.frequency_penalty = 0.5;
  for (const std::size_t last : {0, 1, 3, 5, 7, 9, 10}) {
    options.repeat_last_n = last;
    expect_frequencies(options, random_logits(16, 4), {{0, 3, 3, 7}, {1, 3, 1, 1, 12}});
  }
}

TEST(Sampler, FrequenciesFollowMiniMindsDefaults) {
  expect_frequencies(SamplingOptions{}, random_logits(200, 3), {{1, 2, 3}, {4, 5}});
}

TEST(Sampler, RepeatPenaltyComesAfterTheTemperature) {
  // 2 / 0.5 = 4, / 2 = 2 versus 1 / 0.5 = 2: equal. Presence after temperature: a generated 2 / 0.5 - 2 = 2, too.
  SamplingOptions options = sampling_off();
  options.temperature = 0.5;
  options.repeat_penalty = 2;
  expect_frequencies(options, {2, 1}, {{0}, {}});
  options.repeat_penalty = 1;
  options.presence_penalty = 2;
  expect_frequencies(options, {2, 1}, {{}, {0}});
}

TEST(Sampler, RepeatPenaltyCountsAPromptTokenOnceHoweverOftenItCame) {
  SamplingOptions options = sampling_off();
  options.repeat_penalty = 2;
  options.seed = 5;
  expect_frequencies(options, {2, -1, 0.5f}, {{0, 0, 0, 1}, {1, 1}});
}

TEST(Sampler, PresenceAndFrequencyCountGeneratedTokensOnly) {
  SamplingOptions options = sampling_off();
  options.presence_penalty = 50;
  EXPECT_EQ(tokens_drawn(options, {5, 0}, {{0}, {}}), (Drawn{0, 1})) << "a prompt token is not penalised";
  EXPECT_EQ(tokens_drawn(options, {5, 0}, {{}, {0}}), (Drawn{1}));
  options.presence_penalty = 0;
  options.frequency_penalty = 1;
  expect_frequencies(options, {3, 0}, {{}, {0, 0, 0}});
}

TEST(Sampler, TopKKeepsTheKLargestAndEqualsOfTheKth) {
  SamplingOptions options = sampling_off();
  options.top_k = 2;
  EXPECT_EQ(tokens_drawn(options, {1, 2, 0.9f, 1.1f}), (Drawn{1, 3}));
  EXPECT_EQ(tokens_drawn(options, {1, 2, 1, 1, 0.5f}), (Drawn{0, 1, 2, 3}));
  options.top_k = 1;
  EXPECT_EQ(tokens_drawn(options, {1, 2, 0}), (Drawn{1}));
  options.top_k = 99;
  EXPECT_EQ(tokens_drawn(options, {1, 2, 0}), (Drawn{0, 1, 2}));
}

// Equal logits have probabilities 1/4 exactly, so that the sums 1/4, 1/2, 3/4 are exact, too.
TEST(Sampler, TopPKeepsTheSmallestSetThatExceedsIt) {
  SamplingOptions options = sampling_off();
  const Floats equal{1, 1, 1, 1};
  options.top_p = 0.49;
  EXPECT_EQ(tokens_drawn(options, equal), (Drawn{0, 1}));
  options.top_p = 0.5;
  EXPECT_EQ(tokens_drawn(options, equal), (Drawn{0, 1, 2})) << "1/2 does not exceed 1/2";
  options.top_p = 0.51;
  EXPECT_EQ(tokens_drawn(options, equal), (Drawn{0, 1, 2}));
  options.top_p = 1e-9;
  EXPECT_EQ(tokens_drawn(options, equal), (Drawn{0})) << "one always stays";
  options.top_p = 1;
  EXPECT_EQ(tokens_drawn(options, equal), (Drawn{0, 1, 2, 3}));
}

TEST(Sampler, TopPAddsUpWhatTopKLeft) {
  SamplingOptions options = sampling_off();
  options.top_k = 2;
  options.top_p = 0.49;
  // Of all four, token 0 has less than 0.49; of the two that top-k leaves, it has 1/2.
  EXPECT_EQ(tokens_drawn(options, {1, 1 - 1e-6f, 0.9f, 0.9f}), (Drawn{0}));
}

TEST(Sampler, MinPDropsTokensBelowAShareOfTheTop1Probability) {
  SamplingOptions options = sampling_off();
  options.min_p = 0.3;
  const Floats logits{0, static_cast<float>(std::log(0.31)), static_cast<float>(std::log(0.29))};
  EXPECT_EQ(tokens_drawn(options, logits), (Drawn{0, 1}));
  options.min_p = 1;
  EXPECT_EQ(tokens_drawn(options, {2, 2, 1}), (Drawn{0, 1})) << "equals of the likeliest stay";
}

TEST(Sampler, TheSameSeedGivesTheSameTokensAndAnotherSeedOthers) {
  const Floats logits = random_logits(64, 9);
  const auto draw = [&](std::uint64_t seed) {
    SamplingOptions options = sampling_off();
    options.seed = seed;
    Sampler sampler(options, logits.size());
    Tokens tokens;
    for (int i = 0; i < 50; ++i) tokens.push_back(sampler.sample(logits));
    return tokens;
  };
  EXPECT_EQ(draw(7), draw(7));
  EXPECT_NE(draw(7), draw(8));
  EXPECT_NE(draw(1), draw(1ull << 32 | 1)) << "all 64 bits of a seed count";
}

// The standard fixes the sequence of std::mt19937_64, but not what its distributions make of it.
TEST(Sampler, SeedsGiveTheTokensOfTheStandardGenerator) {
  SamplingOptions options = sampling_off();
  options.seed = 42;
  Sampler sampler(options, 4);
  std::mt19937_64 random(42);
  for (int i = 0; i < 100; ++i) {
    const auto wanted = static_cast<std::int32_t>(random() >> 62);  // which quarter of [0, 1)
    ASSERT_EQ(sampler.sample(Floats{1, 1, 1, 1}), wanted) << i;
  }
}

TEST(Sampler, RejectsLogitsThatAreNotFinite) {
  for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    for (const double temperature : {0.0, 1.0}) {
      SamplingOptions options;
      options.temperature = temperature;
      Sampler sampler(options, 3);
      const std::string error = error_of([&] { sampler.sample(Floats{1, bad, 0}); });
      EXPECT_NE(error.find("NaN or infinity"), std::string::npos) << bad << " at temperature " << temperature;
    }
  }
}

TEST(Sampler, SurvivesTheLargestLogits) {
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(tokens_drawn(sampling_off(), {-largest, largest, 0}), (Drawn{1}));
}

// What check() lets pass must work: an infinity inside would choose the least likely token or none at all.
TEST(Sampler, OptionsNeverOverflowTheLogits) {
  const auto expect_right = [](const SamplingOptions& options, const History& history, std::int32_t wanted) {
    try {
      check(options);
    } catch (const UsageError&) {
      return;
    }
    EXPECT_EQ(tokens_drawn(options, {1, 3, 2, -4, 0}, history), (Drawn{wanted}))
        << "temperature " << options.temperature << ", repeat penalty " << options.repeat_penalty;
  };
  for (const double tiny : {1e-6, 1e-38, 1e-45, 1e-300}) {
    SamplingOptions options;
    options.temperature = tiny;
    expect_right(options, {}, 1);
    options = sampling_off();
    options.repeat_penalty = tiny;
    expect_right(options, {{2}, {}}, 2);
  }
  for (const double huge : {1e38, 1e39, 1e300}) {
    SamplingOptions options = sampling_off();
    options.temperature = 1e-3;
    options.repeat_penalty = huge;
    expect_right(options, {{3, 4}, {}}, 1);
  }
}

TEST(SamplingOptions, AreMiniMindsByDefaultAndPass) {
  const SamplingOptions options;
  EXPECT_EQ(options.temperature, 0.85);
  EXPECT_EQ(options.top_k, 50u);
  EXPECT_EQ(options.top_p, 0.95);
  EXPECT_EQ(options.repeat_penalty, 1.0);
  EXPECT_NO_THROW(check(options));
}

TEST(SamplingOptions, RejectsValuesOutOfRangeNamingTheOption) {
  const double nan = std::nan("");
  struct Case {
    double SamplingOptions::*field;
    const char* name;
    std::vector<double> bad, good;
  };
  const Case cases[] = {
      {&SamplingOptions::temperature, "temperature", {-0.1, nan, HUGE_VAL, -HUGE_VAL}, {0, 0.01, 2}},
      {&SamplingOptions::top_p, "top_p", {-0.1, 1.01, nan, HUGE_VAL}, {0, 0.01, 1}},
      {&SamplingOptions::min_p, "min_p", {-0.1, 1.01, nan, HUGE_VAL}, {0, 0.5, 1}},
      {&SamplingOptions::repeat_penalty, "repeat_penalty", {0, -1, nan, HUGE_VAL}, {0.5, 1, 2}},
      {&SamplingOptions::presence_penalty, "presence_penalty", {nan, HUGE_VAL}, {-2, 0, 2}},
      {&SamplingOptions::frequency_penalty, "frequency_penalty", {nan, -HUGE_VAL}, {-2, 0, 2}},
  };
  for (const Case& c : cases) {
    for (const double value : c.bad) {
      SamplingOptions options;
      options.*c.field = value;
      EXPECT_THROW(check(options), UsageError) << c.name << " " << value;
      EXPECT_TRUE(error_of([&] { check(options); }).starts_with(std::string(c.name) + " is ")) << c.name << value;
    }
    for (const double value : c.good) {
      SamplingOptions options;
      options.*c.field = value;
      EXPECT_NO_THROW(check(options)) << c.name << " " << value;
    }
  }
}

}  // namespace
}  // namespace minimind
