#include "weights/model/yarn_ramp.h"

#include <gtest/gtest.h>

namespace minimind {
namespace {

Config yarn_config(std::size_t head_dim, double theta = 1e6) {
  Config config;
  config.head_dim = head_dim;
  config.rope_theta = theta;
  config.rope_scaling = RopeScaling{};
  return config;
}

YarnRamp ramp_of(const Config& config) {
  return yarn_ramp(config, config.rope_scaling->ramp_end);
}

// 96 ln(2048 / 64 pi) / (2 ln 1e6) = 8.06 and 96 ln(2048 / 2 pi) / (2 ln 1e6) = 20.1.
TEST(YarnRamp, IsBetweenThePairsThatRotateBetaTimes) {
  const YarnRamp ramp = ramp_of(yarn_config(96));
  EXPECT_EQ(ramp.low, 8);
  EXPECT_EQ(ramp.high, 21);
  EXPECT_TRUE(has_usual_yarn_ramp(yarn_config(96)));
  EXPECT_TRUE(has_minimind_yarn_ramp(yarn_config(96)));
}

// 32 ln(2048 / 2 pi) / (2 ln 1e2) = 20.1, which half of 32 cuts off at 15.
TEST(YarnRamp, IsUnusualIfHalfTheHeadClampsIt) {
  Config config = yarn_config(32, 1e2);
  EXPECT_EQ(ramp_of(config).high, 15);
  EXPECT_FALSE(has_usual_yarn_ramp(config));
  EXPECT_TRUE(has_minimind_yarn_ramp(config));
  config.rope_scaling->ramp_end = RopeScaling::RampEnd::head_dim;
  EXPECT_EQ(ramp_of(config).high, 21);
  EXPECT_TRUE(has_usual_yarn_ramp(config));
  EXPECT_FALSE(has_minimind_yarn_ramp(config));
}

// A context of 4 tokens: not even the slowest pair turns once, and the end, -1, is before the start.
TEST(YarnRamp, IsUnusualIfItWouldFall) {
  Config config = yarn_config(96);
  config.rope_scaling->original_max_position_embeddings = 4;
  EXPECT_LT(ramp_of(config).high, ramp_of(config).low);
  EXPECT_FALSE(has_usual_yarn_ramp(config));
}

}  // namespace
}  // namespace minimind
