#include "weights/gguf/settings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temporary_file.h"

namespace minimind {
namespace {

GgufValue whole(std::uint64_t value) {
  return {GgufType::u32, value};
}
GgufValue negative(std::int64_t value) {
  return {GgufType::i32, value};
}
GgufValue real(double value) {
  return {GgufType::f32, static_cast<double>(static_cast<float>(value))};
}
GgufValue flag(bool value) {
  return {GgufType::boolean, value};
}
GgufValue text(const std::string& value) {
  return {GgufType::string, value};
}
template <class Number>
GgufValue list(std::vector<Number> values) {
  using Wide = std::conditional_t<std::is_signed_v<Number>, std::int64_t, std::uint64_t>;
  return {GgufType::u32, GgufNumbers<Wide>(std::move(values))};
}

using Keys = std::vector<std::pair<std::string, GgufValue>>;

// The metadata of a small model, with these values instead or in addition; keys start with the architecture if they
// start with a dot.
GgufMetadata metadata_of(const std::string& architecture, const Keys& changes = {}) {
  GgufMetadata metadata;
  metadata.set_string("general.architecture", architecture);
  const auto set = [&](const std::string& key, const GgufValue& value) {
    metadata.set(key.starts_with('.') ? architecture + key : key, value);
  };
  for (const auto& [key, value] : Keys{{".embedding_length", whole(64)},
                                       {".block_count", whole(2)},
                                       {".context_length", whole(128)},
                                       {".feed_forward_length", whole(96)},
                                       {".attention.head_count", whole(4)},
                                       {".attention.layer_norm_rms_epsilon", real(1e-6)}}) {
    set(key, value);
  }
  for (const auto& [key, value] : changes) set(key, value);
  return metadata;
}

StatedConfig settings_of(const std::string& architecture, const Keys& changes = {}) {
  return gguf_settings(metadata_of(architecture, changes), "m.gguf");
}

std::string error_of_settings(const std::string& architecture, const Keys& changes) {
  return error_of([&] { settings_of(architecture, changes); });
}

TEST(GgufFields, ErrorsShowValuesShortly) {
  const auto error_with = [](const Keys& changes) {
    const GgufMetadata metadata = metadata_of("llama", changes);
    return error_of([&] { GgufFields(metadata, "m.gguf").fail("key", "more"); });
  };
  const auto quoted = [](const std::string& shown) {
    return "m.gguf: key is '" + shown + "'... (101 bytes), expected more";
  };
  EXPECT_EQ(error_with({}), "m.gguf: key is missing, expected more");
  EXPECT_EQ(error_with({{"key", text(std::string(101, 'a'))}}), quoted(std::string(72, 'a')));
  EXPECT_EQ(error_with({{"key", text(std::string(71, 'a') + "\u00fc" + std::string(28, 'a'))}}),
            quoted(std::string(71, 'a')))
      << "not half a character";
  EXPECT_EQ(error_with({{"key", text(std::string(101, '\x80'))}}), quoted("")) << "no character starts there";
}

TEST(GgufSettings, MissingKeysHaveTheValuesOfLlamaCpp) {
  const StatedConfig stated = settings_of("llama");
  EXPECT_EQ(stated.family, Family::llama);
  EXPECT_EQ(stated.num_key_value_heads, 4u);
  EXPECT_EQ(stated.head_dim, 16u);
  EXPECT_EQ(stated.rms_norm_eps, 1e-6) << "as meant, not as f32 holds it";
  EXPECT_EQ(stated.rope_theta, 10000);
  EXPECT_EQ(stated.hidden_act, HiddenAct::silu);
  EXPECT_EQ(stated.num_experts, std::nullopt);
  EXPECT_EQ(stated.rope_scaling, std::nullopt);
  EXPECT_TRUE(stated.eos_token_id.empty());
  EXPECT_EQ(settings_of("qwen3").family, Family::qwen3);
}

TEST(GgufSettings, OneValueForAllLayersMayBeAList) {
  EXPECT_EQ(
      settings_of("llama", {{".attention.head_count_kv", list(std::vector<std::uint32_t>{2, 2})}}).num_key_value_heads,
      2u);
  EXPECT_EQ(settings_of("llama", {{".feed_forward_length", list(std::vector<std::int32_t>{96, 96})}}).intermediate_size,
            96u);
  EXPECT_EQ(settings_of("llama", {{".block_count", negative(2)}}).num_hidden_layers, 2u) << "of a signed type";
}

TEST(GgufSettings, ReadsTheTokensThatEndAText) {
  EXPECT_EQ(settings_of("llama", {{"tokenizer.ggml.eos_token_id", whole(2)}}).eos_token_id,
            std::vector<std::int32_t>{2});
  const Keys both{{"tokenizer.ggml.eos_token_id", whole(2)},
                  {"minimind.eos_token_ids", list(std::vector<std::int32_t>{5, 6})}};
  EXPECT_EQ(settings_of("llama", both).eos_token_id, (std::vector<std::int32_t>{5, 6}));
}

TEST(GgufSettings, NamesWhatItDoesNotUse) {
  const StatedConfig stated = settings_of("minimind", {{"minimind.family", text("v3")},
                                                       {"minimind.dropout", real(0.1)},
                                                       {"minimind.vector_type", text("f16")},
                                                       {"minimind.tokenizer.unk", whole(1)},
                                                       {"other.dropout", real(0.1)}});
  EXPECT_EQ(stated.unused, std::vector<std::string>{"minimind.dropout"});
}

struct Wrong {
  std::string architecture;
  Keys changes;
  std::string message;  // a part of it
};

TEST(GgufSettings, NamesTheKeyThatIsWrong) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<Wrong> cases{
      {"gpt2", {}, "general.architecture is 'gpt2'; llama, qwen3 and qwen3moe can be run"},
      {"llama", {{"general.architecture", whole(1)}}, "general.architecture is 1, expected a string"},
      {"bailingmoe", {}, "but there is no minimind.family, so minimind did not write it"},
      {"minimind", {}, "but there is no minimind.family"},
      {"llama", {{"minimind.family", text("qwen3")}}, "minimind.family is 'qwen3', expected a family that the arch"},
      {"qwen3", {{"minimind.family", text("llama")}}, "minimind.family is 'llama', expected a family that the arch"},
      {"minimind", {{"minimind.family", text("v9")}}, "minimind.family is 'v9', expected a family"},
      {"minimind", {{"minimind.family", flag(true)}}, "minimind.family is true, expected a string"},
      {"llama", {{".attention.sliding_window", whole(128)}}, "llama.attention.sliding_window is 128, expected 0 or"},
      {"llama", {{".attention.scale", real(0.5)}}, "llama.attention.scale is 0.5, expected 0 or nothing"},
      {"llama", {{".attn_logit_softcapping", text("0")}}, "llama.attn_logit_softcapping is '0', expected 0 or"},
      {"llama", {{".logit_scale", real(2)}}, "llama.logit_scale is 2, expected 0 or nothing"},
      {"llama", {{".expert_gating_func", whole(2)}}, "llama.expert_gating_func is 2, expected 1 or nothing"},
      {"llama", {{".attention.causal", flag(false)}}, "llama.attention.causal is false, expected true"},
      {"llama", {{".attention.causal", whole(1)}}, "llama.attention.causal is 1, expected true or false"},
      {"llama", {{".embedding_length", whole(0)}}, "llama.embedding_length is 0"},
      {"llama", {{".block_count", whole((1u << 24) + 1)}}, "llama.block_count is 16777217, expected a whole number"},
      {"llama", {{".block_count", negative(-1)}}, "llama.block_count is -1, expected a whole number"},
      {"llama", {{".block_count", real(2)}}, "llama.block_count is 2, expected a whole number"},
      {"llama", {{".block_count", list(std::vector<std::uint32_t>{})}}, "llama.block_count is [], expected a whole"},
      {"llama", {{".feed_forward_length", list(std::vector<std::uint32_t>{96, 32})}}, "is [96, 32], expected a whole"},
      {"llama", {{".feed_forward_length", list(std::vector<std::int32_t>{96, -96})}}, "is [96, -96], expected a whole"},
      {"llama", {{".attention.layer_norm_rms_epsilon", real(0)}}, "is 0, expected a positive number"},
      {"llama", {{".attention.layer_norm_rms_epsilon", real(1e-39)}}, "expected a positive number, at least 1.2e-38"},
      {"llama", {{".rope.freq_base", {GgufType::f64, 1e-300}}}, "is 1e-300, expected a positive number, at least"},
      {"llama", {{".attention.layer_norm_rms_epsilon", real(-1)}}, "is -1, expected a positive number"},
      {"llama", {{".attention.layer_norm_rms_epsilon", real(infinity)}}, "is inf, expected a positive number"},
      {"llama", {{".attention.layer_norm_rms_epsilon", real(std::nan(""))}}, "is nan, expected a positive number"},
      {"llama", {{".attention.layer_norm_rms_epsilon", whole(1)}}, "is 1, expected a positive number"},
      {"llama", {{".attention.value_length", whole(8)}}, "attention.value_length is 8, expected 16, the size of a"},
      {"llama", {{".rope.dimension_count", whole(8)}}, "rope.dimension_count is 8, expected 16, the size of a"},
      {"llama", {{".rope.scaling.type", text("longrope")}}, "rope.scaling.type is 'longrope', expected none, linear"},
      {"llama", {{".rope.scaling.type", whole(1)}}, "llama.rope.scaling.type is 1, expected a string"},
      {"llama", {{".rope.scaling.factor", real(-4)}}, "llama.rope.scaling.factor is -4, expected a positive number"},
      {"llama", {{".rope.scaling.attn_factor", real(2)}}, "rope.scaling.attn_factor is 2, expected 1 or nothing"},
      {"llama",
       {{".rope.scaling.type", text("yarn")}, {".rope.scaling.factor", real(4)}},
       "llama.rope.scaling.original_context_length is missing"},
      {"llama",
       {{".rope.scaling.type", text("yarn")},
        {".rope.scaling.original_context_length", whole(64)},
        {"minimind.rope.scaling.ramp_end", text("middle")}},
       "minimind.rope.scaling.ramp_end is 'middle', expected half_head_dim or head_dim"},
      {"llama", {{".expert_shared_count", whole(1)}}, "llama.expert_shared_count is 1, expected 0 or nothing"},
      {"llama", {{".expert_count", whole(4)}}, "llama.expert_used_count is missing"},
      {"qwen3moe", {{".expert_count", whole(4)}, {".expert_used_count", whole(0)}}, "expert_used_count is 0"},
      {"llama",
       {{".expert_count", whole(4)}, {".expert_used_count", whole(1)}},
       "llama.expert_used_count is 1: an MoE model of the architecture llama with one expert per token"},
      {"qwen3moe",
       {{".expert_count", whole(4)}, {".expert_used_count", whole(2)}, {".expert_weights_norm", flag(false)}},
       "qwen3moe.expert_weights_norm is false, expected true, as qwen3moe is computed"},
      {"llama", {{"minimind.hidden_act", text("tanh")}}, "'tanh'"},
      {"llama", {{"tokenizer.ggml.eos_token_id", text("2")}}, "eos_token_id is '2', expected token ids"},
      {"llama", {{"tokenizer.ggml.eos_token_id", negative(-2)}}, "eos_token_id is -2, expected token ids"},
      {"llama", {{"minimind.eos_token_ids", whole(1u << 30)}}, "eos_token_ids is 1073741824, expected token ids"},
  };
  for (const Wrong& wrong : cases) {
    const std::string message = error_of_settings(wrong.architecture, wrong.changes);
    EXPECT_NE(message.find(wrong.message), std::string::npos) << message << "\nexpected: " << wrong.message;
    EXPECT_NE(message.find("m.gguf"), std::string::npos) << message;
  }
  GgufMetadata without;
  without.set_string("general.architecture", "llama");
  EXPECT_EQ(error_of([&] { gguf_settings(without, "m.gguf"); }), "m.gguf: llama.embedding_length is missing");
  EXPECT_NE(error_of([] { gguf_settings({}, "m.gguf"); }).find("general.architecture is ''"), std::string::npos);
  GgufMetadata without_eps = metadata_of("llama");
  without_eps.set("llama.attention.layer_norm_rms_epsilon", text("1e-6"));
  EXPECT_NE(error_of([&] { gguf_settings(without_eps, "m.gguf"); }).find("expected a positive number"),
            std::string::npos);
}

TEST(GgufSettings, SettingsThatChangeNothingAreAllowed) {
  const Keys neutral{{".attention.sliding_window", whole(0)},
                     {".attention.scale", real(0)},
                     {".logit_scale", real(1)},
                     {".residual_scale", whole(0)},
                     {".expert_gating_func", whole(1)},
                     {".attention.causal", flag(true)},
                     {".attention.value_length", whole(16)},
                     {".rope.dimension_count", whole(16)},
                     {".expert_shared_count", whole(0)},
                     {".expert_count", whole(0)},
                     {".rope.scaling.attn_factor", real(1)},
                     {".rope.scaling.type", text("none")}};
  EXPECT_EQ(settings_of("llama", neutral).rope_scaling, std::nullopt);
}

TEST(GgufSettings, AFactorWithoutATypeScalesLinearly) {
  for (const char* const key : {".rope.scale_linear", ".rope.scaling.factor"}) {
    const StatedConfig stated = settings_of("llama", {{key, real(4)}});
    ASSERT_TRUE(stated.rope_scaling) << key;
    EXPECT_EQ(stated.rope_scaling->kind, RopeScaling::Kind::linear);
    EXPECT_EQ(stated.rope_scaling->factor, 4);
  }
  EXPECT_EQ(
      settings_of("llama", {{".rope.scale_linear", real(4)}, {".rope.scaling.factor", real(2)}}).rope_scaling->factor,
      2)
      << "the new name wins";
  EXPECT_EQ(settings_of("llama", {{".rope.scaling.factor", real(1)}}).rope_scaling, std::nullopt);
  EXPECT_EQ(
      settings_of("llama", {{".rope.scaling.factor", real(4)}, {".rope.scaling.type", text("none")}}).rope_scaling,
      std::nullopt);
}

TEST(GgufSettings, YarnHasTheDefaultsOfItsPaper) {
  Keys keys{{".rope.scaling.type", text("yarn")},
            {".rope.scaling.factor", real(16)},
            {".rope.scaling.original_context_length", whole(64)}};
  const RopeScaling plain = *settings_of("llama", keys).rope_scaling;
  EXPECT_EQ(plain.kind, RopeScaling::Kind::yarn);
  EXPECT_EQ(plain.beta_fast, 32);
  EXPECT_EQ(plain.beta_slow, 1);
  EXPECT_EQ(plain.ramp_end, RopeScaling::RampEnd::head_dim);
  EXPECT_NEAR(plain.attention_factor, 1 + 0.1 * std::log(16.0), 1e-6);
  keys.emplace_back(".rope.scaling.attn_factor", real(static_cast<double>(gguf_attention_factor(1, 16))));
  keys.emplace_back("minimind.rope.scaling.ramp_end", text("half_head_dim"));
  const RopeScaling of_minimind = *settings_of("llama", keys).rope_scaling;
  EXPECT_EQ(of_minimind.attention_factor, 1);
  EXPECT_EQ(of_minimind.ramp_end, RopeScaling::RampEnd::half_head_dim);
}

TEST(GgufSettings, TheArchitectureTellsWhetherExpertsAreDividedByTheirSum) {
  const Keys experts{{".expert_count", whole(4)}, {".expert_used_count", whole(2)}};
  EXPECT_EQ(settings_of("qwen3moe", experts).norm_topk_prob, true);
  EXPECT_EQ(settings_of("llama", experts).norm_topk_prob, true);
  EXPECT_EQ(settings_of("llama", experts).n_shared_experts, 0u);
  Keys of_minimind = experts;
  of_minimind.emplace_back("minimind.family", text("v3"));
  EXPECT_EQ(settings_of("minimind", of_minimind).norm_topk_prob, false);
  of_minimind.emplace_back(".expert_weights_norm", flag(true));
  EXPECT_EQ(settings_of("minimind", of_minimind).norm_topk_prob, true);
  of_minimind.emplace_back("minimind.norm_topk_prob", flag(false));
  of_minimind.emplace_back(".expert_shared_count", whole(1));
  EXPECT_EQ(settings_of("minimind", of_minimind).norm_topk_prob, false);
  EXPECT_EQ(settings_of("minimind", of_minimind).n_shared_experts, 1u);
}

// An array in place of a number takes its bytes in the file, not eight for each value.
TEST(GgufSettings, LongArraysAreNotWidened) {
  for (const auto& [key, most] : Keys{{".block_count", whole(65536)}, {"tokenizer.ggml.eos_token_id", whole(1024)}}) {
    const auto limit = std::get<std::uint64_t>(most.data);
    const GgufValue longer = list(std::vector<std::uint8_t>(limit + 1, 2));
    const std::string error = error_of([&, &name = key] { settings_of("llama", {{name, longer}}); });
    EXPECT_NE(error.find("expected at most " + std::to_string(limit) + " numbers"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace minimind
