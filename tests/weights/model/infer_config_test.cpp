#include "weights/model/infer_config.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/infer.h"

namespace minimind {
namespace {

TEST(InferConfig, RecognisesV1ByItsNamesAndTwoToOne) {
  const auto [config, sources] = infer(small_v1().tensors());
  EXPECT_EQ(config.family, Family::v1);
  EXPECT_EQ(sources.at("family").detail.english(), "tensor names, rows of wq = 2 x rows of wk");
  EXPECT_EQ(config.num_attention_heads, 16u);
  EXPECT_EQ(config.num_key_value_heads, 8u);
  EXPECT_EQ(config.head_dim, 2u);
  EXPECT_EQ(config.rope_theta, 1e4);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
}

TEST(InferConfig, RecognisesV2EarlyByItsNamesAndFourToOne) {
  SmallModel model = small_v1();
  model.k_rows = 8;
  const auto [config, sources] = infer(model.tensors());
  EXPECT_EQ(config.family, Family::v2_early);
  EXPECT_EQ(config.num_attention_heads, 8u);
  EXPECT_EQ(config.num_key_value_heads, 2u);
  EXPECT_EQ(config.head_dim, 4u);
  EXPECT_EQ(config.rope_theta, 1e6);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
}

TEST(InferConfig, RecognisesV2ByModernNamesWithoutQNorm) {
  const auto [config, sources] = infer(v2_by_habit().tensors());
  EXPECT_EQ(config.family, Family::v2);
  EXPECT_EQ(sources.at("family").detail.english(), "tensor names, without self_attn.q_norm");
  EXPECT_EQ(config.num_attention_heads, 8u);
  EXPECT_EQ(config.num_key_value_heads, 2u);
  EXPECT_EQ(config.head_dim, 4u);
  EXPECT_EQ(config.rope_theta, 1e6);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_EQ(config.max_position_embeddings, 32768u);
}

TEST(InferConfig, RecognisesV3ByQNormWhoseLengthIsHeadDim) {
  const auto [config, sources] = infer(SmallModel{}.tensors());
  EXPECT_EQ(config.family, Family::v3);
  EXPECT_EQ(sources.at("family").detail.english(), "self_attn.q_norm is present");
  EXPECT_EQ(config.head_dim, 4u);
  EXPECT_EQ(sources.at("head_dim").detail.english(), "length of q_norm");
  EXPECT_EQ(config.num_attention_heads, 2u);
  EXPECT_EQ(config.num_key_value_heads, 1u);
  EXPECT_EQ(config.rope_theta, 1e6);
  EXPECT_EQ(config.rms_norm_eps, 1e-6);
}

TEST(InferConfig, RecognisesHuggingFaceFamiliesByModelType) {
  const std::string heads = R"("num_attention_heads": 2, "num_key_value_heads": 1})";
  EXPECT_EQ(infer(small_v2().tensors(), R"({"model_type": "llama", )" + heads).config.family, Family::llama);
  const auto [config, sources] = infer(SmallModel{}.tensors(), R"({"model_type": "qwen3", )" + heads);
  EXPECT_EQ(config.family, Family::qwen3);
  EXPECT_EQ(sources.at("family").detail.english(), "model_type in config.json");
  EXPECT_EQ(
      infer(mixture({}, 3, 0).tensors(), R"({"model_type": "qwen3_moe", "num_experts_per_tok": 2})").config.family,
      Family::qwen3_moe);
  EXPECT_EQ(infer(SmallModel{}.tensors(), R"({"model_type": "minimind", "intermediate_size": 6})").config.family,
            Family::v3);
}

TEST(InferConfig, RejectsAModelTypeThatTheTensorsContradict) {
  expect_error({"llama", "config.json"}, SmallModel{}.tensors(), R"({"model_type": "llama"})");
  expect_error({"qwen3"}, small_v2().tensors(), R"({"model_type": "qwen3"})");
  expect_error({"llama"}, small_v1().tensors(), R"({"model_type": "llama"})");
  expect_error({"'gpt2'", "minimind", "qwen3_moe"}, SmallModel{}.tensors(), R"({"model_type": "gpt2"})");
}

TEST(InferConfig, V1NamesOfAnotherRatioNeedAConfig) {
  SmallModel model = small_v1();
  model.k_rows = 32;
  expect_error({"32 rows", "a config", "rope_theta"}, model.tensors());
  const auto [config, sources] = infer(model.tensors(), R"({"rope_theta": 1e6, "n_heads": 8, "n_kv_heads": 8})");
  EXPECT_EQ(config.family, Family::v2_early);
  EXPECT_EQ(config.num_key_value_heads, 8u);
  EXPECT_EQ(rope_layout(config.family), RopeLayout::adjacent_pairs);
}

TEST(InferConfig, ShapesSayWhatTheyCan) {
  const auto [config, sources] = infer(SmallModel{}.tensors());
  EXPECT_EQ(config.vocab_size, 12u);
  EXPECT_EQ(config.hidden_size, 8u);
  EXPECT_EQ(config.num_hidden_layers, 2u);
  EXPECT_EQ(config.intermediate_size, 6u);
  EXPECT_EQ(sources.at("vocab_size").detail.english(), "rows of embed_tokens");
  EXPECT_EQ(sources.at("hidden_size").detail.english(), "columns of embed_tokens");
  EXPECT_EQ(sources.at("num_hidden_layers").detail.english(), "layers that have tensors");
  EXPECT_EQ(sources.at("intermediate_size").detail.english(), "rows of layer 0's up_proj");
  EXPECT_EQ(config.num_experts, 0u);
  EXPECT_EQ(config.hidden_act, HiddenAct::silu);
  EXPECT_EQ(config.eos_token_id, std::vector<std::int32_t>{2});
}

TEST(InferConfig, NamesWhatItAssumed) {
  const ConfigSources sources = infer(v2_by_habit().tensors()).sources;
  for (const char* name : {"num_attention_heads", "num_key_value_heads", "rope_theta", "rms_norm_eps",
                           "max_position_embeddings", "hidden_act", "eos_token_id"}) {
    EXPECT_EQ(sources.at(name).kind, ConfigSource::Kind::assumed) << name << ": " << sources.at(name).detail.english();
  }
  EXPECT_EQ(sources.at("rope_theta").kind, ConfigSource::Kind::assumed);
  EXPECT_EQ(sources.at("rope_theta").detail.english(), "what v2 uses");
}

TEST(InferConfig, AConfigWinsOverHabit) {
  const auto [config, sources] = infer(SmallModel{}.tensors(), R"({"rope_theta": 5e5, "rms_norm_eps": 1e-4,
      "max_position_embeddings": 100, "hidden_act": "relu", "eos_token_id": [3, 4]})");
  EXPECT_EQ(config.rope_theta, 5e5);
  EXPECT_EQ(config.rms_norm_eps, 1e-4);
  EXPECT_EQ(config.max_position_embeddings, 100u);
  EXPECT_EQ(config.hidden_act, HiddenAct::relu);
  EXPECT_EQ(config.eos_token_id, (std::vector<std::int32_t>{3, 4}));
  for (const char* name : {"rope_theta", "rms_norm_eps", "max_position_embeddings", "hidden_act", "eos_token_id"}) {
    EXPECT_EQ(sources.at(name).detail.english(), "config.json") << name;
  }
}

// As MiniMind's scripts/convert_model.py writes both.
TEST(InferConfig, LaterFamiliesIgnoreMaxSeqLen) {
  for (const auto& model : {SmallModel{}, v2_by_habit(), mixture(SmallModel{}, 3, 0), mixture(v2_by_habit(), 3, 1)}) {
    const auto [config, sources] = infer(model.tensors(), R"({"max_seq_len": 8192, "max_position_embeddings": 100})");
    EXPECT_EQ(config.max_position_embeddings, 100u);
    EXPECT_EQ(infer(model.tensors(), R"({"max_seq_len": 512})").config.max_position_embeddings, 32768u);
  }
}

TEST(InferConfig, FirstGenerationsTakeTheirPositionsFromMaxSeqLen) {
  const std::string both = R"({"max_seq_len": 512, "max_position_embeddings": 100})";
  EXPECT_EQ(infer(small_v1().tensors(), both).config.max_position_embeddings, 512u);
  EXPECT_EQ(infer(small_v1().tensors(), R"({"max_position_embeddings": 100})").config.max_position_embeddings, 100u);
}

TEST(InferConfig, HasASourceForEveryField) {
  const ConfigSources sources = infer(mixture(v2_by_habit(), 3, 1).tensors()).sources;
  for (const char* name : {"family",
                           "vocab_size",
                           "hidden_size",
                           "num_hidden_layers",
                           "num_attention_heads",
                           "num_key_value_heads",
                           "head_dim",
                           "intermediate_size",
                           "hidden_act",
                           "max_position_embeddings",
                           "rms_norm_eps",
                           "rope_theta",
                           "rope_scaling",
                           "tie_word_embeddings",
                           "num_experts",
                           "num_experts_per_tok",
                           "n_shared_experts",
                           "moe_intermediate_size",
                           "norm_topk_prob",
                           "eos_token_id"}) {
    EXPECT_TRUE(sources.contains(name) && !sources.at(name).detail.english().empty()) << name;
  }
}

TEST(InferConfig, AConfigThatTheTensorsContradictIsRejectedWithBothValues) {
  const StoredTensors tensors = SmallModel{}.tensors();
  expect_error({"vocab_size", "6400", "12"}, tensors, R"({"vocab_size": 6400})");
  expect_error({"hidden_size", "768", "8"}, tensors, R"({"hidden_size": 768})");
  expect_error({"num_hidden_layers", "16", "2"}, tensors, R"({"num_hidden_layers": 16})");
  expect_error({"intermediate_size", "2432", "6"}, tensors, R"({"intermediate_size": 2432})");
  expect_error({"head_dim", "96", "4"}, tensors, R"({"head_dim": 96})");
  expect_error({"num_attention_heads", "8", "2"}, tensors, R"({"num_attention_heads": 8})");
  expect_error({"num_key_value_heads", "4", "1"}, tensors, R"({"num_key_value_heads": 4})");
  expect_error({"use_moe", "true", "no experts"}, tensors, R"({"use_moe": true})");
}

TEST(InferConfig, HeadsCanBeGivenByConfigOrFlagAndTheFlagWins) {
  const StoredTensors tensors = small_v2().tensors();
  expect_error({"8 rows", "4", "8 heads", "2 kv heads"}, tensors);
  const auto by_config = infer(tensors, R"({"num_attention_heads": 2, "num_key_value_heads": 1})");
  EXPECT_EQ(by_config.config.head_dim, 4u);
  EXPECT_EQ(by_config.sources.at("num_attention_heads").detail.english(), "config.json");
  const auto by_flag = infer(tensors, R"({"num_attention_heads": 2, "num_key_value_heads": 1})",
                             {.heads = 4, .kv_heads = 2, .experts_per_token = {}, .yarn = {}});
  EXPECT_EQ(by_flag.config.num_attention_heads, 4u);
  EXPECT_EQ(by_flag.config.num_key_value_heads, 2u);
  EXPECT_EQ(by_flag.config.head_dim, 2u);
  EXPECT_EQ(by_flag.sources.at("num_attention_heads").kind, ConfigSource::Kind::caller);
  EXPECT_EQ(by_flag.sources.at("num_key_value_heads").kind, ConfigSource::Kind::caller);
}

TEST(InferConfig, OneHeadCountDeterminesTheOther) {
  ConfigOverrides overrides;
  overrides.heads = 2;
  EXPECT_EQ(infer(small_v2().tensors(), "", overrides).config.num_key_value_heads, 1u);
  overrides = {};
  overrides.kv_heads = 1;
  EXPECT_EQ(infer(small_v2().tensors(), "", overrides).config.num_attention_heads, 2u);
}

TEST(InferConfig, NothingWinsOverTheTensors) {
  ConfigOverrides overrides;
  overrides.heads = 4;
  expect_error({"num_attention_heads", "4 as requested", "2"}, SmallModel{}.tensors(), "", overrides);
  overrides = {};
  overrides.kv_heads = 2;
  expect_error({"num_key_value_heads", "as requested"}, SmallModel{}.tensors(), "", overrides);
}

TEST(InferConfig, FewerRowsThanTheHeadsOfAGenerationAreRejected) {
  SmallModel model = small_v2();
  model.q_rows = 4;
  model.k_rows = 1;
  expect_error({"q_proj has 4 rows and k_proj 1, expected 8 heads and 2 kv heads as v2 has"}, model.tensors());
}

TEST(InferConfig, OnlyNumberedTensorsAreOfLayers) {
  StoredTensors tensors = SmallModel{}.tensors();
  for (const char* name : {"model.layers.x.weight", "model.layers.7", "model.layers.7x.weight"}) {
    tensors[name] = zeros({1});
  }
  EXPECT_EQ(infer(tensors).config.num_hidden_layers, 2u);
}

TEST(InferConfig, AFamilyThatTheTensorsContradictIsRejected) {
  const auto error_as = [](Family family, const SmallModel& model) {
    StatedConfig stated;
    stated.source = "the metadata";
    stated.family = family;
    return error_of([&] { infer_config(to_canonical_names(model.tensors(), "m"), stated, {}, "m"); });
  };
  EXPECT_EQ(error_as(Family::v3, small_v2()), "m: the metadata says v3, but self_attn.q_norm is missing");
  EXPECT_EQ(error_as(Family::v2, {}), "m: the metadata says v2, but self_attn.q_norm is there");
}

TEST(InferConfig, HeadsThatDoNotDivideTheRowsAreRejected) {
  for (const std::size_t heads : {0u, 3u, 16u}) {
    ConfigOverrides overrides;
    overrides.heads = heads;
    expect_error({"q_proj", "8 rows", std::to_string(heads)}, small_v2().tensors(), "", overrides);
  }
  SmallModel model;
  model.q_norm = 3;
  expect_error({"q_proj", "8 rows", "3"}, model.tensors());
}

TEST(InferConfig, HeadsThatCannotShareKvHeadsEvenlyAreRejected) {
  SmallModel model;
  model.q_rows = 12;
  model.k_rows = 8;
  expect_error({"3 heads", "2 kv heads"}, model.tensors());
}

TEST(InferConfig, AnOddHeadDimIsRejected) {
  SmallModel model;
  model.q_norm = 1;
  expect_error({"head_dim is 1", "even"}, model.tensors());
  ConfigOverrides overrides;
  overrides.heads = 8;
  expect_error({"head_dim is 1", "8 heads"}, small_v2().tensors(), "", overrides);
}

TEST(InferConfig, AQNormThatIsNotAVectorIsRejected) {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{2, 4}}) {
    StoredTensors tensors = SmallModel{}.tensors();
    tensors["model.layers.0.self_attn.q_norm.weight"] = counting_tensor(shape);
    expect_error({"q_norm", shape_text(shape), "[head_dim]"}, tensors);
  }
}

TEST(InferConfig, AMissingLayerIsNamed) {
  SmallModel model;
  model.layers = 4;
  StoredTensors tensors = model.tensors();
  std::erase_if(tensors, [](const auto& entry) { return entry.first.starts_with("model.layers.1."); });
  expect_error({"model.layers.1 ", "model.layers.2"}, tensors);
  std::erase_if(tensors, [](const auto& entry) { return entry.first.starts_with("model.layers."); });
  expect_error({"no layers"}, tensors);
}

TEST(InferConfig, AnUnrelatedCheckpointIsReported) {
  expect_error({"not a MiniMind checkpoint", "1 tensors", "'transformer.wte.weight'"},
               {{"transformer.wte.weight", zeros({2, 2})}});
  expect_error({"not a MiniMind checkpoint", "0 tensors"}, {});
}

TEST(InferConfig, TheMatricesItReadsMustBeMatrices) {
  for (const char* name : {"model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight",
                           "model.layers.0.self_attn.k_proj.weight", "model.layers.0.mlp.up_proj.weight"}) {
    for (const Shape& shape : {Shape{}, Shape{8}, Shape{0, 8}, Shape{8, 0}, Shape{2, 2, 2}}) {
      StoredTensors tensors = SmallModel{}.tensors();
      tensors[name] = counting_tensor(shape);
      expect_error({name, shape_text(shape), "matrix"}, tensors);
    }
  }
}

TEST(InferConfig, EmbeddingsAreTiedIfLmHeadIsAbsentOrEqual) {
  StoredTensors tensors = SmallModel{}.tensors();
  EXPECT_TRUE(infer(tensors).config.tie_word_embeddings);
  EXPECT_EQ(infer(tensors).sources.at("tie_word_embeddings").detail.english(), "lm_head is absent");
  tensors["lm_head.weight"] = tensors.at("model.embed_tokens.weight");
  EXPECT_TRUE(infer(tensors).config.tie_word_embeddings);
  tensors["lm_head.weight"] = counting_tensor({12, 8});
  EXPECT_TRUE(infer(tensors).config.tie_word_embeddings) << "the same numbers, stored twice";
  EXPECT_EQ(infer(tensors).sources.at("tie_word_embeddings").detail.english(), "lm_head equals embed_tokens");
}

TEST(InferConfig, EmbeddingsAreUntiedIfLmHeadDiffers) {
  StoredTensors tensors = SmallModel{}.tensors();
  for (const StoredTensor& head : {counting_tensor({12, 8}, 1), counting_tensor({11, 8}), zeros({12, 8}, DType::f16)}) {
    tensors["lm_head.weight"] = head;
    EXPECT_FALSE(infer(tensors).config.tie_word_embeddings);
    expect_error({"tie_word_embeddings is true", "lm_head"}, tensors, R"({"tie_word_embeddings": true})");
    EXPECT_FALSE(infer(tensors, R"({"tie_word_embeddings": false})").config.tie_word_embeddings);
  }
}

TEST(InferConfig, AnUntiedConfigWithoutLmHeadIsRejected) {
  expect_error({"tie_word_embeddings is false", "lm_head.weight is missing"}, SmallModel{}.tensors(),
               R"({"tie_word_embeddings": false})");
}

TEST(InferConfig, AnEmptyContextIsRejected) {
  expect_error({"max_position_embeddings is 0", "config.json"}, SmallModel{}.tensors(),
               R"({"max_position_embeddings": 0})");
}

TEST(InferConfig, FfnsWithoutAGateRequireAnActivation) {
  SmallModel model;
  model.gated = false;
  expect_error({"without a gate", "hidden_act relu or gelu"}, model.tensors());
  EXPECT_EQ(infer(model.tensors(), R"({"hidden_act": "gelu"})").config.hidden_act, HiddenAct::gelu);
  EXPECT_EQ(infer(model.tensors(), R"({"model_type": "minimind", "hidden_act": "relu"})").config.intermediate_size, 6u)
      << "MiniMind's default size is of FFNs with a gate";
}

// Neither 2 to 1 nor 4 to 1: only v2-early's config knows rope_theta.
TEST(InferConfig, AConfigDistinguishesV1FromV2EarlyIfTheRowsDoNot) {
  SmallModel model = small_v1();
  model.q_rows = 36;
  model.k_rows = 12;
  expect_error({"36", "12", "a config"}, model.tensors());
  const Config v1 = infer(model.tensors(), R"({"n_heads": 6, "n_kv_heads": 2})").config;
  EXPECT_EQ(v1.family, Family::v1);
  EXPECT_EQ(v1.rope_theta, 1e4);
  const Config early = infer(model.tensors(), R"({"n_heads": 6, "n_kv_heads": 2, "rope_theta": 5e5})").config;
  EXPECT_EQ(early.family, Family::v2_early);
  EXPECT_EQ(early.rope_theta, 5e5);
}

}  // namespace
}  // namespace minimind
