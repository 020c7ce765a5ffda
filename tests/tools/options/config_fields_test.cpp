#include "tools/options/config_fields.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/golden.h"
#include "tests/support/stored.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {
namespace {

Checkpoint open_golden(const std::string& name) {
  return open_checkpoint(load_golden(name).model_path, {});
}

const ConfigField* find(const std::vector<ConfigField>& fields, const std::string& name) {
  const auto field = std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.name == name; });
  return field == fields.end() ? nullptr : &*field;
}

nlohmann::ordered_json value_of(const Checkpoint& checkpoint, const std::string& name) {
  const auto fields = config_fields(checkpoint);
  const ConfigField* field = find(fields, name);
  return field ? field->value : nlohmann::ordered_json("absent");
}

TEST(ConfigFields, HaveHuggingFaceNames) {
  const Checkpoint checkpoint = open_golden("v3-dense");
  EXPECT_EQ(value_of(checkpoint, "family"), "v3");
  EXPECT_EQ(value_of(checkpoint, "vocab_size"), 96);
  EXPECT_EQ(value_of(checkpoint, "hidden_size"), 32);
  EXPECT_EQ(value_of(checkpoint, "num_hidden_layers"), 2);
  EXPECT_EQ(value_of(checkpoint, "num_attention_heads"), 4);
  EXPECT_EQ(value_of(checkpoint, "num_key_value_heads"), 2);
  EXPECT_EQ(value_of(checkpoint, "head_dim"), 8);
  EXPECT_EQ(value_of(checkpoint, "intermediate_size"), 24);
  EXPECT_EQ(value_of(checkpoint, "hidden_act"), "silu");
  EXPECT_EQ(value_of(checkpoint, "rms_norm_eps"), 1e-6);
  EXPECT_EQ(value_of(checkpoint, "rope_theta"), 1e6);
  EXPECT_EQ(value_of(checkpoint, "rope_scaling"), nullptr);
  EXPECT_EQ(value_of(checkpoint, "max_position_embeddings"), 32768);
  EXPECT_EQ(value_of(checkpoint, "tie_word_embeddings"), true);
  EXPECT_EQ(value_of(checkpoint, "eos_token_id"), nlohmann::ordered_json::array({2}));
}

TEST(ConfigFields, OfEveryCaseHaveTheirSource) {
  for (const std::string& name : golden_names()) {
    const Checkpoint checkpoint = open_golden(name);
    for (const ConfigField& field : config_fields(checkpoint)) {
      EXPECT_NE(field.source.english(), "") << name << ": " << field.name;
      EXPECT_EQ(field.source, source_of(field.name, checkpoint.sources.at(field.name))) << name << ": " << field.name;
    }
  }
}

TEST(ConfigFields, IncludeEverySource) {
  for (const char* name : {"v2-moe", "v3-dense"}) {
    const Checkpoint checkpoint = open_golden(name);
    const auto fields = config_fields(checkpoint);
    for (const auto& [field, source] : checkpoint.sources) EXPECT_TRUE(find(fields, field)) << name << ": " << field;
  }
}

TEST(ConfigFields, OfExpertsExistOnlyInMoeModels) {
  const Checkpoint dense = open_golden("v3-dense"), moe = open_golden("v2-moe");
  for (const char* name :
       {"num_experts", "num_experts_per_tok", "n_shared_experts", "moe_intermediate_size", "norm_topk_prob"}) {
    EXPECT_EQ(value_of(dense, name), "absent") << name;
    EXPECT_NE(value_of(moe, name), "absent") << name;
  }
  EXPECT_EQ(value_of(moe, "num_experts"), moe.config.num_experts);
  EXPECT_EQ(value_of(moe, "num_experts_per_tok"), 2);
  EXPECT_EQ(value_of(moe, "norm_topk_prob"), true);
}

TEST(ConfigFields, ShowRopeScalingAsInConfigJson) {
  Checkpoint checkpoint;
  checkpoint.config.rope_scaling = RopeScaling{};
  const nlohmann::ordered_json yarn = value_of(checkpoint, "rope_scaling");
  EXPECT_EQ(yarn.at("type"), "yarn");
  EXPECT_EQ(yarn.at("factor"), 16);
  EXPECT_EQ(yarn.at("original_max_position_embeddings"), 2048);
  EXPECT_EQ(yarn.at("beta_fast"), 32);
  EXPECT_EQ(yarn.at("beta_slow"), 1);
  EXPECT_EQ(yarn.at("attention_factor"), 1);
  checkpoint.config.rope_scaling->kind = RopeScaling::Kind::linear;
  checkpoint.config.rope_scaling->factor = 4;
  EXPECT_EQ(value_of(checkpoint, "rope_scaling"), (nlohmann::ordered_json{{"type", "linear"}, {"factor", 4.0}}));
}

TEST(Assumptions, NameTheFieldItsValueAndTheReason) {
  const std::string text = assumptions(open_golden("v2-dense"));
  EXPECT_NE(text.find("what v2 uses: "), std::string::npos) << text;
  EXPECT_NE(text.find("num_attention_heads 8, "), std::string::npos) << text;
  EXPECT_NE(text.find(", "), std::string::npos) << text;
  EXPECT_EQ(text.find("hidden_size"), std::string::npos) << "the shapes define it: " << text;
}

TEST(Assumptions, AreOnlyFieldsThatMayDiffer) {
  const std::string constants = "rope_theta 1000000.0, hidden_act silu, is_causal true";
  EXPECT_EQ(assumptions(open_golden("v3-dense")), "what v3 uses: rms_norm_eps 1e-06, " + constants);
  EXPECT_EQ(assumptions(open_golden("v2-dense")),
            "what v2 uses: num_attention_heads 8, num_key_value_heads 2, rms_norm_eps 1e-05, " + constants);
  EXPECT_EQ(assumptions(open_golden("v3-moe")),
            "what v3 uses: rms_norm_eps 1e-06, " + constants + ", num_experts_per_tok 1, norm_topk_prob true");
}

TEST(Assumptions, AreEmptyIfTheConfigIsComplete) {
  EXPECT_EQ(assumptions(open_golden("hf-qwen3-moe")), "");
  Checkpoint checkpoint;
  EXPECT_EQ(assumptions(checkpoint), "");
}

TEST(ParameterCount, CountsWeightsOfAnyType) {
  Checkpoint checkpoint;
  EXPECT_EQ(parameter_count(checkpoint), 0u);
  checkpoint.tensors.emplace("a", zeros({3, 4}));
  checkpoint.tensors.emplace("b", zeros({5}, DType::f16));
  checkpoint.tensors.emplace("c", zeros({}, DType::bf16));
  EXPECT_EQ(parameter_count(checkpoint), 18u);
}

// 96 x 32 embedding, 2 layers of 4 x 8 x 32 + 2 (2 x 8) x 32 + 32 x (4 x 8) attention, 3 x 24 x 32 FFN, norms of 2 x 32
// + 2 x 8, and a last norm of 32. Tied embeddings count once.
TEST(ParameterCount, OfAGoldenModelEqualsItsShapes) {
  const std::size_t layer = 32 * 32 + 2 * 16 * 32 + 32 * 32 + 3 * 24 * 32 + 2 * 32 + 2 * 8;
  EXPECT_EQ(parameter_count(open_golden("v3-dense")), 96 * 32 + 2 * layer + 32);
  EXPECT_EQ(parameter_count(open_golden("v3-untied")), 2 * 96 * 32 + 2 * layer + 32);
}

TEST(StoredTypes, NamesTheTypeOfMostValuesFirst) {
  Checkpoint checkpoint;
  EXPECT_EQ(stored_types(checkpoint), "");
  checkpoint.tensors.emplace("a", zeros({5}, DType::f32));
  EXPECT_EQ(stored_types(checkpoint), "f32");
  checkpoint.tensors.emplace("b", zeros({6}, DType::f16));
  EXPECT_EQ(stored_types(checkpoint), "f16, f32");
  checkpoint.tensors.emplace("c", zeros({2}, DType::f32));
  EXPECT_EQ(stored_types(checkpoint), "f32, f16");
}

TEST(StoredTypes, OfGoldenModelsAreAsWritten) {
  EXPECT_EQ(stored_types(open_golden("v3-dense")), "f16");
  EXPECT_EQ(stored_types(open_golden("v3-bf16")), "bf16");
  EXPECT_EQ(stored_types(open_golden("v3-fp32")), "f32");
}

}  // namespace
}  // namespace minimind
