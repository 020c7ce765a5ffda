#include <gtest/gtest.h>

#include <string>

#include "tests/support/infer.h"

namespace minimind {
namespace {

TEST(InferMoe, AnMoeConfigMustAgreeToo) {
  const StoredTensors tensors = mixture(v2_by_habit(), 3, 1).tensors();
  expect_error({"num_experts", "4", "3"}, tensors, R"({"n_routed_experts": 4})");
  expect_error({"n_shared_experts", "2", "1"}, tensors, R"({"n_shared_experts": 2})");
  expect_error({"moe_intermediate_size", "7", "6"}, tensors, R"({"moe_intermediate_size": 7})");
  expect_error({"use_moe", "false", "experts"}, tensors, R"({"use_moe": false})");
}

TEST(InferMoe, ExpertsAreCountedByTheRouter) {
  const auto [config, sources] = infer(mixture(v2_by_habit(), 3, 2).tensors());
  EXPECT_EQ(config.num_experts, 3u);
  EXPECT_EQ(config.n_shared_experts, 2u);
  EXPECT_EQ(config.moe_intermediate_size, 6u);
  EXPECT_EQ(config.intermediate_size, 6u) << "there is no dense layer";
  EXPECT_TRUE(config.norm_topk_prob);
}

TEST(InferMoe, ExpertsPerTokenAreTwoInV1AndV2AndOneInV3) {
  EXPECT_EQ(infer(mixture(small_v1(), 4, 1).tensors()).config.num_experts_per_tok, 2u);
  EXPECT_EQ(infer(mixture(v2_by_habit(), 4, 1).tensors()).config.num_experts_per_tok, 2u);
  const auto [config, sources] = infer(mixture({}, 4, 0).tensors());
  EXPECT_EQ(config.num_experts_per_tok, 1u);
  EXPECT_EQ(sources.at("num_experts_per_tok").kind, ConfigSource::Kind::assumed);
  EXPECT_EQ(sources.at("num_experts_per_tok").detail.english(), "what v3 uses");
}

TEST(InferMoe, ExpertsPerTokenCanBeGivenByConfigOrFlagAndTheFlagWins) {
  const StoredTensors tensors = mixture({}, 4, 0).tensors();
  EXPECT_EQ(infer(tensors, R"({"num_experts_per_tok": 3})").config.num_experts_per_tok, 3u);
  ConfigOverrides overrides;
  overrides.experts_per_token = 2;
  const auto [config, sources] = infer(tensors, R"({"num_experts_per_tok": 3})", overrides);
  EXPECT_EQ(config.num_experts_per_tok, 2u);
  EXPECT_EQ(sources.at("num_experts_per_tok").kind, ConfigSource::Kind::caller);
  for (const std::size_t bad : {0u, 5u}) {
    overrides.experts_per_token = bad;
    expect_error({"num_experts_per_tok is " + std::to_string(bad), "as requested", "1 to 4"}, tensors, "", overrides);
    expect_error({"num_experts_per_tok is " + std::to_string(bad), "in config.json", "1 to 4"}, tensors,
                 "{\"num_experts_per_tok\": " + std::to_string(bad) + "}");
  }
}

// transformers' Qwen3MoeConfig has other defaults than MiniMind: 8 experts, not normalised.
TEST(InferMoe, AQwen3MoeMustStateItsExpertsPerToken) {
  const StoredTensors tensors = mixture({}, 4, 0).tensors();
  expect_error({"num_experts_per_tok", "is missing in config.json"}, tensors, R"({"model_type": "qwen3_moe"})");
  ConfigOverrides overrides;
  overrides.experts_per_token = 3;
  EXPECT_EQ(infer(tensors, R"({"model_type": "qwen3_moe"})", overrides).config.num_experts_per_tok, 3u);
  const Config config = infer(tensors, R"({"model_type": "qwen3_moe", "num_experts_per_tok": 2})").config;
  EXPECT_FALSE(config.norm_topk_prob);
  EXPECT_FALSE(normalizes_router(config));
}

TEST(InferMoe, ARouterOfOneExpertIsNormalisedInV3Only) {
  const std::string one = R"({"num_experts_per_tok": 1})";
  EXPECT_TRUE(normalizes_router(infer(mixture({}, 4, 0).tensors(), one).config));
  EXPECT_FALSE(normalizes_router(infer(mixture(v2_by_habit(), 4, 1).tensors(), one).config));
  EXPECT_TRUE(normalizes_router(infer(mixture(v2_by_habit(), 4, 1).tensors()).config));
}

TEST(InferMoe, V3IgnoresSharedExpertsInItsConfig) {
  EXPECT_EQ(infer(mixture({}, 4, 0).tensors(), R"({"n_shared_experts": 1})").config.n_shared_experts, 0u);
}

TEST(InferMoe, DenseAndMoeLayersMayMix) {
  SmallModel model = mixture({}, 3, 0);
  StoredTensors tensors = model.tensors();
  std::erase_if(tensors, [](const auto& entry) { return entry.first.starts_with("model.layers.0.mlp."); });
  for (const char* part : {"gate_proj", "up_proj"}) {
    tensors[layer_tensor(0, std::string("mlp.") + part + ".weight")] = counting_tensor({10, 8});
  }
  tensors[layer_tensor(0, "mlp.down_proj.weight")] = counting_tensor({8, 10});
  const Config config = infer(tensors).config;
  EXPECT_EQ(config.intermediate_size, 10u);
  EXPECT_EQ(config.moe_intermediate_size, 6u);
  EXPECT_EQ(config.num_experts, 3u);
}

TEST(InferMoe, ANullIntermediateSizeMeansMiniMindsRule) {
  SmallModel model;
  model.ffn = 64;  // ceil(8 pi / 64) * 64
  EXPECT_EQ(infer(model.tensors(), R"({"intermediate_size": null})").config.intermediate_size, 64u);
  EXPECT_EQ(infer(model.tensors(), R"({"model_type": "minimind"})").config.intermediate_size, 64u);
  model.ffn = 128;
  expect_error({"intermediate_size is 64", "128"}, model.tensors(), R"({"intermediate_size": null})");
  expect_error({"intermediate_size is 64", "128"}, model.tensors(), R"({"model_type": "minimind"})");
  EXPECT_EQ(infer(model.tensors(), "{}").config.intermediate_size, 128u) << "a bare config need not say everything";
}

TEST(InferMoe, ANullHiddenDimFollowsMultipleOf) {
  SmallModel model = v2_by_habit();
  model.ffn = 30;  // int(2 * 32 / 3) = 21 -> 30
  EXPECT_EQ(infer(model.tensors(), R"({"hidden_dim": null, "multiple_of": 15})").config.intermediate_size, 30u);
  expect_error({"intermediate_size is 64", "30"}, model.tensors(), R"({"hidden_dim": null})");
  model.ffn = 64;
  EXPECT_EQ(infer(mixture(model, 2, 1).tensors(), R"({"hidden_dim": null})").config.moe_intermediate_size, 64u);
}

TEST(InferMoe, ARouterForMoreExpertsThanThereAreShowsBothCounts) {
  StoredTensors tensors = mixture(v2_by_habit(), 3, 1).tensors();
  tensors.at("model.layers.0.mlp.gate.weight").shape[0] = 8000000;
  expect_error({"8000000 rows", "3 experts"}, tensors);
}

TEST(InferMoe, ExpertsPerTokenOfADenseModelIsAWrongCall) {
  ConfigOverrides overrides;
  overrides.experts_per_token = 2;
  EXPECT_THROW(infer(SmallModel{}.tensors(), "", overrides), UsageError);
}

}  // namespace
}  // namespace minimind
