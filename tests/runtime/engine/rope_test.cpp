#include "runtime/engine/rope.h"
#include "tests/support/epsilon.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace minimind {
namespace {

Config config_of(std::size_t head_dim, double theta) {
  Config config;
  config.head_dim = head_dim;
  config.rope_theta = theta;
  return config;
}

TEST(Rope, FrequenciesFallFromOneByPowersOfTheta) {
  const Rope rope = make_rope(config_of(96, 1e6));
  ASSERT_EQ(rope.frequencies.size(), 48u);
  EXPECT_EQ(rope.frequencies[0], 1.0f);
  EXPECT_EQ(rope.attention_factor, 1.0f);
  for (std::size_t i = 0; i < 48; ++i) {
    // The exponent, in float, is off by epsilon / 2, which the power multiplies by ln(theta) = 13.8; two more
    // roundings.
    const double exact = std::pow(1e6, -2.0 * static_cast<double>(i) / 96);
    EXPECT_NEAR(rope.frequencies[i], exact, 9 * epsilon * exact) << i;
  }
}

TEST(Rope, AnglesArePositionTimesFrequency) {
  const Rope rope = make_rope(config_of(8, 1e4));
  float cos[4], sin[4];
  for (const std::size_t position : {0u, 1u, 7u, 30000u}) {
    rope_angles(rope, position, cos, sin);
    for (std::size_t i = 0; i < 4; ++i) {
      // The angle is a float product, as it is in PyTorch.
      const double angle = static_cast<float>(position) * rope.frequencies[i];
      EXPECT_NEAR(cos[i], std::cos(angle), epsilon);
      EXPECT_NEAR(sin[i], std::sin(angle), epsilon);
    }
  }
}

// d = 96, theta = 1e6, original 2048: pair i rotates 2048 f_i / 2 pi times. low = floor(96 ln(2048 / (32 2 pi)) / (2 ln
// 1e6)) = 8, high = ceil(96 ln(2048 / (2 pi)) / (2 ln 1e6)) = 21.
TEST(Rope, YarnKeepsFastPairsAndDividesSlowOnes) {
  Config config = config_of(96, 1e6);
  const Rope plain = make_rope(config);
  config.rope_scaling = RopeScaling{};
  const Rope yarn = make_rope(config);
  for (std::size_t i = 0; i < 48; ++i) {
    const double ramp = std::min(std::max((static_cast<double>(i) - 8) / (21 - 8), 0.0), 1.0);
    const double exact = plain.frequencies[i] * (1 - ramp + ramp / 16);
    EXPECT_NEAR(yarn.frequencies[i], exact, 4 * epsilon * plain.frequencies[i]) << i;
  }
  EXPECT_EQ(yarn.frequencies[8], plain.frequencies[8]);
  EXPECT_EQ(yarn.frequencies[21], plain.frequencies[21] / 16);
}

TEST(Rope, YarnRampOfMiniMindEndsAtHalfTheHead) {
  Config config = config_of(8, 1e4);
  config.rope_scaling = RopeScaling{};
  config.rope_scaling->original_max_position_embeddings = 20000;
  // The ramp runs from pair 1 to pair 4, one beyond the last: MiniMind moves its end to pair 3, which is then divided
  // by the whole factor; transformers leaves it at 2/3 of the way.
  const double plain = std::pow(1e4, -6.0 / 8);
  EXPECT_NEAR(make_rope(config).frequencies[3], plain / 16, 4 * epsilon * plain);
  config.rope_scaling->ramp_end = RopeScaling::RampEnd::head_dim;
  EXPECT_NEAR(make_rope(config).frequencies[3], plain * (1.0 / 3 + 2.0 / 3 / 16), 4 * epsilon * plain);
}

TEST(Rope, YarnAttentionFactorScalesCosinesAndSines) {
  Config config = config_of(8, 1e4);
  config.rope_scaling = RopeScaling{};
  config.rope_scaling->attention_factor = 1.5;
  float cos[4], sin[4];
  rope_angles(make_rope(config), 0, cos, sin);
  EXPECT_EQ(cos[0], 1.5f);
  EXPECT_EQ(sin[0], 0.0f);
}

TEST(Rope, LinearScalingDividesEveryFrequency) {
  Config config = config_of(8, 1e4);
  const Rope plain = make_rope(config);
  config.rope_scaling = RopeScaling{};
  config.rope_scaling->kind = RopeScaling::Kind::linear;
  config.rope_scaling->factor = 4;
  const Rope linear = make_rope(config);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(linear.frequencies[i], plain.frequencies[i] / 4);
}

}  // namespace
}  // namespace minimind
