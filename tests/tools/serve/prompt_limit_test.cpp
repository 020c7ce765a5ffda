#include "tools/serve/prompt_limit.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace minimind {
namespace {

// The longest of the last steps of a prompt whose tokens take so many seconds each.
double longest_step(PromptLimit& limit, double seconds_per_token) {
  double longest = 0;
  for (int step = 0; step < 40; ++step) {
    const double seconds = 0.002 + seconds_per_token * static_cast<double>(limit.tokens());
    limit.learn(limit.tokens(), seconds);
    if (step >= 20) longest = std::max(longest, seconds);
  }
  return longest;
}

TEST(PromptLimit, KeepsStepsAboutAsLongAsAllowed) {
  for (const double seconds_per_token : {1e-5, 1e-4, 1e-3}) {
    PromptLimit limit(0.03, 8, 128);
    EXPECT_LT(longest_step(limit, seconds_per_token), 0.035) << seconds_per_token;
    EXPECT_GE(limit.tokens(), seconds_per_token < 2e-4 ? 128u : 20u);
  }
}

TEST(PromptLimit, RecoversFromAStepThatWasHeldUp) {
  PromptLimit limit(0.03, 8, 128);
  limit.learn(128, 10);
  EXPECT_EQ(limit.tokens(), 64u);
  limit.learn(64, 0.01);
  EXPECT_EQ(limit.tokens(), 128u);
}

TEST(PromptLimit, LearnsNothingFromTheShortEndOfAPrompt) {
  PromptLimit limit(0.03, 8, 128);
  limit.learn(3, 0.003);
  limit.learn(0, 1);
  EXPECT_EQ(limit.tokens(), 128u);
  limit.learn(8, 1);
  EXPECT_EQ(limit.tokens(), 8u);
}

}  // namespace
}  // namespace minimind
