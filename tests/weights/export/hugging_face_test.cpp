#include "weights/export/hugging_face.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/support/golden.h"
#include "tests/support/infer.h"
#include "tests/support/stored.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

struct Model {
  Config config;
  StoredTensors tensors;
};

Model model_of(const SmallModel& small, const std::string& config_json = "") {
  CanonicalTensors canonical = to_canonical_names(small.tensors(), "test.pth");
  return {infer(small.tensors(), config_json).config, std::move(canonical.tensors)};
}

Model with_tensor(Model model, const std::string& name, const Shape& shape) {
  model.tensors.emplace(name, counting_tensor(shape));
  return model;
}

std::string type_of(const Model& model) {
  return hf_model_type(model.config, model.tensors).model_type;
}

std::string reason_of(const Model& model) {
  const HfModelType type = hf_model_type(model.config, model.tensors);
  EXPECT_EQ(type.model_type, "minimind");
  return type.why_not_transformers ? type.why_not_transformers->english() : "";
}

std::string text_of(const Model& model, const std::string& type) {
  return hf_config_json(model.config, model.tensors, type, DType::f16);
}

Json json_of(const Model& model) {
  return Json::parse(text_of(model, type_of(model)));
}

void expect_same_scaling(const std::optional<RopeScaling>& got, const std::optional<RopeScaling>& wanted) {
  ASSERT_EQ(got.has_value(), wanted.has_value());
  if (!got) return;
  EXPECT_EQ(got->kind, wanted->kind);
  EXPECT_EQ(got->factor, wanted->factor);
  if (got->kind == RopeScaling::Kind::linear) return;
  EXPECT_EQ(got->original_max_position_embeddings, wanted->original_max_position_embeddings);
  EXPECT_EQ(got->beta_fast, wanted->beta_fast);
  EXPECT_EQ(got->beta_slow, wanted->beta_slow);
  EXPECT_EQ(got->attention_factor, wanted->attention_factor);
}

// Everything but the family, which is now that of the code the config is for.
void expect_same_model(const Config& got, const Config& wanted) {
  EXPECT_EQ(got.vocab_size, wanted.vocab_size);
  EXPECT_EQ(got.hidden_size, wanted.hidden_size);
  EXPECT_EQ(got.num_hidden_layers, wanted.num_hidden_layers);
  EXPECT_EQ(got.num_attention_heads, wanted.num_attention_heads);
  EXPECT_EQ(got.num_key_value_heads, wanted.num_key_value_heads);
  EXPECT_EQ(got.head_dim, wanted.head_dim);
  EXPECT_EQ(got.intermediate_size, wanted.intermediate_size);
  EXPECT_EQ(got.hidden_act, wanted.hidden_act);
  EXPECT_EQ(got.max_position_embeddings, wanted.max_position_embeddings);
  EXPECT_EQ(got.rms_norm_eps, wanted.rms_norm_eps);
  EXPECT_EQ(got.rope_theta, wanted.rope_theta);
  expect_same_scaling(got.rope_scaling, wanted.rope_scaling);
  EXPECT_EQ(got.tie_word_embeddings, wanted.tie_word_embeddings);
  EXPECT_EQ(got.eos_token_id, wanted.eos_token_id);
  EXPECT_EQ(got.num_experts, wanted.num_experts);
  if (wanted.num_experts == 0) return;
  EXPECT_EQ(got.num_experts_per_tok, wanted.num_experts_per_tok);
  EXPECT_EQ(got.n_shared_experts, wanted.n_shared_experts);
  EXPECT_EQ(got.moe_intermediate_size, wanted.moe_intermediate_size);
  EXPECT_EQ(normalizes_router(got), normalizes_router(wanted));
}

// As the given type, and as MiniMind's own.
void expect_read_back(const Model& model) {
  for (const std::string& type : {type_of(model), std::string("minimind")}) {
    SCOPED_TRACE(type);
    expect_same_model(infer(model.tensors, text_of(model, type)).config, model.config);
  }
}

TEST(HfConfig, OfEveryReferenceCheckpointIsReadBackAsTheSameModel) {
  for (const std::string& name : golden_names()) {
    SCOPED_TRACE(name);
    const GoldenCase golden = load_golden(name);
    OpenOptions options;
    if (golden.yarn) options.overrides.yarn = true;
    const Checkpoint checkpoint = open_checkpoint(golden.model_path, options);
    expect_read_back({checkpoint.config, checkpoint.tensors});
  }
}

TEST(HfConfig, OfOtherModelsIsReadBackAsTheSameModel) {
  expect_read_back(model_of(small_v1()));
  expect_read_back(model_of(small_v2(), R"({"n_heads": 2, "eos_token_id": [2, 0], "rope_theta": 12345.5})"));
  expect_read_back(model_of(SmallModel{}, R"({"rope_scaling": {"rope_type": "linear", "factor": 2.5}})"));
  const std::string top_1 = R"({"num_experts_per_tok": 1})";
  expect_read_back(model_of(mixture(v2_by_habit(), 3, 1), top_1));
  expect_read_back(model_of(mixture(v2_by_habit(), 3, 2), R"({"norm_topk_prob": false})"));
  expect_read_back(model_of(mixture(SmallModel{}, 3, 0), R"({"norm_topk_prob": false, "num_experts_per_tok": 2})"));
}

TEST(HfConfig, IsLlamaWithoutQNorm) {
  SmallModel v1 = small_v1();
  v1.hidden = 32;
  for (const SmallModel& small : {v1, v2_by_habit()}) {
    const Model model = model_of(small);
    EXPECT_FALSE(hf_model_type(model.config, model.tensors).why_not_transformers);
    const Json json = json_of(model);
    EXPECT_EQ(json.at("model_type"), "llama");
    EXPECT_EQ(json.at("architectures"), Json::array({"LlamaForCausalLM"}));
    EXPECT_EQ(json.at("head_dim"), model.config.head_dim);
    EXPECT_EQ(json.at("torch_dtype"), "float16");
    EXPECT_EQ(json.at("attention_bias"), false);
    EXPECT_FALSE(json.contains("mlp_bias"));
  }
}

TEST(HfConfig, IsQwen3WithQNorm) {
  const Json json = json_of(model_of(SmallModel{}));
  EXPECT_EQ(json.at("model_type"), "qwen3");
  EXPECT_EQ(json.at("architectures"), Json::array({"Qwen3ForCausalLM"}));
}

TEST(HfConfig, IsQwen3MoeForMoeWithQNormAndNoSharedExperts) {
  const Json json = json_of(model_of(mixture(SmallModel{}, 4, 0)));
  EXPECT_EQ(json.at("model_type"), "qwen3_moe");
  EXPECT_EQ(json.at("num_experts"), 4);
  EXPECT_EQ(json.at("num_experts_per_tok"), 1);
  EXPECT_EQ(json.at("norm_topk_prob"), true);
  EXPECT_EQ(json.at("decoder_sparse_step"), 1);
  EXPECT_EQ(json.at("mlp_only_layers"), Json::array());
}

TEST(HfConfig, NamesTheDenseLayersOfAQwen3Moe) {
  SmallModel small;
  small.layers = 3;
  StoredTensors tensors = mixture(small, 2, 0).tensors();
  std::erase_if(tensors, [](const auto& entry) { return entry.first.starts_with("model.layers.1.mlp."); });
  for (const auto& [name, tensor] : small.tensors()) {
    if (name.starts_with("model.layers.1.mlp.")) tensors.emplace(name, tensor);
  }
  const Model model{infer(tensors).config, tensors};
  EXPECT_EQ(json_of(model).at("mlp_only_layers"), Json::array({1}));
  expect_read_back(model);
}

TEST(HfConfig, IsMinimindIfTransformersCannotComputeIt) {
  EXPECT_NE(reason_of(model_of(mixture(v2_by_habit(), 2, 1))).find("shared experts"), std::string::npos);
  EXPECT_NE(reason_of(model_of(mixture(SmallModel{}, 2, 1))).find("shared experts"), std::string::npos);
  EXPECT_NE(reason_of(model_of(mixture(v2_by_habit(), 2, 0))).find("without q_norm"), std::string::npos);
  SmallModel ungated;
  ungated.gated = false;
  EXPECT_NE(reason_of(model_of(ungated, R"({"hidden_act": "relu"})")).find("no gate"), std::string::npos);
}

TEST(HfConfig, RequiresHeadsThatDivideTheHiddenSizeForLlama) {
  SmallModel small = small_v2();
  small.hidden = 9;
  EXPECT_NE(reason_of(model_of(small, R"({"n_heads": 2})")).find("2 heads do not divide"), std::string::npos);
  small.q_norm = 4;
  EXPECT_EQ(type_of(model_of(small)), "qwen3");
}

TEST(HfConfig, SupportsBiasesOnlyOnAllThreeMatricesOfLlama) {
  Model model = model_of(v2_by_habit());
  for (const char* part : {"gate", "up", "down"}) {
    const bool down = std::string_view(part) == "down";
    for (const char* layer : {"0", "1"}) {
      const std::string name = std::string("model.layers.") + layer + ".mlp." + part + "_proj.bias";
      model = with_tensor(model, name, {down ? 8u : 6u});
    }
    EXPECT_EQ(type_of(model), down ? "llama" : "minimind") << part;
  }
  EXPECT_EQ(json_of(model).at("mlp_bias"), true);
  EXPECT_NE(reason_of(with_tensor(model_of(SmallModel{}), "model.layers.0.mlp.up_proj.bias", {6})).find("biases"),
            std::string::npos);
}

TEST(HfConfig, NamesEachEndOfTextOnce) {
  Model model = model_of(SmallModel{});
  model.config.eos_token_id = {2, 2};
  EXPECT_EQ(json_of(model).at("eos_token_id"), 2);
  model.config.eos_token_id = {2, 5, 2};
  EXPECT_EQ(json_of(model).at("eos_token_id"), Json::array({2, 5}));
}

TEST(HfConfig, WritesYarnThatTransformersComputesAlike) {
  Model model = model_of(SmallModel{}, R"({"inference_rope_scaling": true})");
  model.config.head_dim = 96;
  const Json json = json_of(model);
  EXPECT_EQ(json.at("model_type"), "qwen3");
  EXPECT_EQ(json.at("rope_scaling"),
            Json::parse(R"({"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 2048,
                            "beta_fast": 32.0, "beta_slow": 1.0, "attention_factor": 1.0})"));
  model.config.rope_theta = 100;  // the ramp would end after half the head
  EXPECT_NE(reason_of(model).find("YaRN"), std::string::npos);
  EXPECT_EQ(json_of(model).at("inference_rope_scaling"), true);
}

TEST(HfConfig, RejectsAYarnThatNothingComputes) {
  Model model = model_of(mixture(v2_by_habit(), 2, 1), R"({"inference_rope_scaling": true})");
  model.config.head_dim = 32;
  model.config.rope_theta = 100;
  EXPECT_EQ(error_of([&] { json_of(model); }), "");
  model.config.rope_scaling->ramp_end = RopeScaling::RampEnd::head_dim;
  EXPECT_NE(error_of([&] { json_of(model); }).find("another YaRN"), std::string::npos);
}

}  // namespace
}  // namespace minimind
