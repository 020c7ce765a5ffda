#include <gtest/gtest.h>

#include <string>

#include "tests/support/infer.h"

namespace minimind {
namespace {

TEST(InferYarn, YarnIsOffUnlessRequested) {
  const auto [config, sources] = infer(SmallModel{}.tensors());
  EXPECT_FALSE(config.rope_scaling);
  EXPECT_EQ(sources.at("rope_scaling").detail.english(), "off unless requested");
  EXPECT_FALSE(infer(SmallModel{}.tensors(), R"({"inference_rope_scaling": false})").config.rope_scaling);
}

TEST(InferYarn, ARequestForYarnOverridesTheConfig) {
  const StoredTensors tensors = SmallModel{}.tensors();
  const std::string on = R"({"inference_rope_scaling": true})";
  EXPECT_TRUE(infer(tensors, on).config.rope_scaling);
  ConfigOverrides overrides;
  overrides.yarn = true;
  const auto [config, sources] = infer(tensors, "", overrides);
  ASSERT_TRUE(config.rope_scaling);
  EXPECT_EQ(config.rope_scaling->kind, RopeScaling::Kind::yarn);
  EXPECT_EQ(config.rope_scaling->factor, 16.0);
  EXPECT_EQ(sources.at("rope_scaling").kind, ConfigSource::Kind::caller);
  overrides.yarn = false;
  EXPECT_FALSE(infer(tensors, on, overrides).config.rope_scaling);
}

TEST(InferYarn, ARequestForYarnKeepsTheConfigsSettings) {
  ConfigOverrides overrides;
  overrides.yarn = true;
  const auto scaling = infer(SmallModel{}.tensors(), R"({"rope_scaling": {"type": "yarn", "factor": 4}})", overrides);
  ASSERT_TRUE(scaling.config.rope_scaling);
  EXPECT_EQ(scaling.config.rope_scaling->factor, 4.0);
  const auto linear = infer(SmallModel{}.tensors(), R"({"rope_scaling": {"type": "linear", "factor": 4}})", overrides);
  EXPECT_EQ(linear.config.rope_scaling->kind, RopeScaling::Kind::yarn);
  EXPECT_EQ(linear.config.rope_scaling->factor, 16.0) << "that of MiniMind, not that of another scaling";
}

TEST(InferYarn, YarnNeedNotStateWhereItsRampStarts) {
  const auto config = infer(SmallModel{}.tensors(), R"({"inference_rope_scaling": true,
      "rope_scaling": {"type": "yarn", "factor": 4}})")
                          .config;
  ASSERT_TRUE(config.rope_scaling);
  EXPECT_EQ(config.rope_scaling->beta_fast, 32.0);
}

TEST(InferYarn, InferenceRopeScalingFalseOverridesRopeScaling) {
  EXPECT_FALSE(infer(SmallModel{}.tensors(), R"({"inference_rope_scaling": false, "rope_scaling": {"type": "yarn"}})")
                   .config.rope_scaling);
}

// precompute_freqs_cis scales only when end / orig_max > 1.
TEST(InferYarn, MiniMindsYarnHasNoEffectOnAContextNoLongerThanTheOriginal) {
  for (const auto& [positions, on] : {std::pair{2048, false}, {2049, true}}) {
    const auto [config, sources] = infer(SmallModel{}.tensors(), R"({"inference_rope_scaling": true,
        "max_position_embeddings": )" + std::to_string(positions) + "}");
    EXPECT_EQ(config.rope_scaling.has_value(), on) << positions;
    EXPECT_EQ(sources.at("rope_scaling").detail.english().find("without effect") != std::string::npos, !on);
  }
}

TEST(InferYarn, YarnOfTransformersTakesTheContextAsTheOriginal) {
  const Config config = infer(SmallModel{}.tensors(), R"({"model_type": "qwen3", "max_position_embeddings": 512,
      "rope_scaling": {"rope_type": "yarn", "factor": 4}})")
                            .config;
  ASSERT_TRUE(config.rope_scaling);
  EXPECT_EQ(config.rope_scaling->original_max_position_embeddings, 512.0);
  const Config silent = infer(SmallModel{}.tensors(), R"({"model_type": "qwen3",
      "rope_scaling": {"rope_type": "yarn", "factor": 4}})")
                            .config;
  EXPECT_EQ(silent.rope_scaling->original_max_position_embeddings, 32768.0);
}

TEST(InferYarn, YarnRequiresAThetaAboveOne) {
  expect_error({"rope_theta is 1", "YaRN"}, SmallModel{}.tensors(),
               R"({"rope_theta": 1, "inference_rope_scaling": true})");
}

TEST(InferYarn, ARequestWithoutEffectIsAUsageError) {
  ConfigOverrides overrides;
  overrides.yarn = true;
  EXPECT_THROW(infer(SmallModel{}.tensors(), R"({"max_position_embeddings": 2048})", overrides), UsageError);
}

}  // namespace
}  // namespace minimind
