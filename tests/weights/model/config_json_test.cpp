#include "weights/model/config_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/temporary_file.h"

namespace minimind {
namespace {

StatedConfig parse(const std::string& text) {
  return parse_config_json(text, "config.json");
}

// What is said about `text`; always one line that starts with the source.
std::string parse_error(const std::string& text) {
  const std::string error = error_of([&] { parse(text); });
  EXPECT_TRUE(error.starts_with("config.json: ")) << text.substr(0, 200) << " gives: " << error;
  EXPECT_EQ(error.find('\n'), std::string::npos) << "a message is one line: " << error;
  EXPECT_LT(error.size(), 600u) << error;
  return error;
}

void expect_parse_error(const std::string& text, const std::vector<std::string>& parts) {
  const std::string error = parse_error(text);
  for (const std::string& part : parts) {
    EXPECT_NE(error.find(part), std::string::npos) << text.substr(0, 200) << " gives: " << error;
  }
}

const std::vector<std::string> size_keys{"vocab_size",
                                         "hidden_size",
                                         "num_hidden_layers",
                                         "num_attention_heads",
                                         "num_key_value_heads",
                                         "head_dim",
                                         "intermediate_size",
                                         "moe_intermediate_size",
                                         "max_position_embeddings",
                                         "num_experts",
                                         "num_experts_per_tok",
                                         "n_shared_experts",
                                         "multiple_of",
                                         "dim",
                                         "n_layers",
                                         "n_heads",
                                         "n_kv_heads",
                                         "hidden_dim",
                                         "max_seq_len",
                                         "n_routed_experts"};

// int(2 * 4d / 3) rounded up to a multiple of 64, as MiniMind's FeedForward has it.
TEST(FeedForwardSize, IsThatOfTheReleasedModels) {
  EXPECT_EQ(default_intermediate_size(512, 64, {}), 1408u);
  EXPECT_EQ(default_intermediate_size(640, 64, {}), 1728u);
  EXPECT_EQ(default_intermediate_size(768, 64, {}), 2048u);
}

TEST(FeedForwardSize, AppliesTheMultiplierBeforeItRoundsUp) {
  EXPECT_EQ(default_intermediate_size(512, 64, 1.3), 1792u) << "1365 x 1.3 = 1774.5";
  EXPECT_EQ(default_intermediate_size(512, 256, 0.5), 768u) << "1365 x 0.5 = 682.5";
  EXPECT_EQ(default_intermediate_size(512, 1, 1.5), 2047u) << "int(1365 x 1.5)";
}

TEST(FeedForwardSize, LeavesAMultipleAsItIs) {
  EXPECT_EQ(default_intermediate_size(96, 256, {}), 256u);
  EXPECT_EQ(default_intermediate_size(96, 255, {}), 510u);
  EXPECT_EQ(default_intermediate_size(0, 64, {}), 0u);
}

TEST(FeedForwardSize, OfV3IsPiTimesTheWidth) {
  EXPECT_EQ(default_intermediate_size_v3(768), 2432u);
  EXPECT_EQ(default_intermediate_size_v3(512), 1664u);
  EXPECT_EQ(default_intermediate_size_v3(64), 256u);
}

TEST(StatedConfig, OfAnEmptyObjectStatesNothing) {
  const StatedConfig stated = parse("{}");
  EXPECT_EQ(stated.source, "config.json");
  EXPECT_FALSE(stated.model_type || stated.vocab_size || stated.hidden_size || stated.head_dim);
  EXPECT_FALSE(stated.rms_norm_eps || stated.rope_theta || stated.rope_scaling || stated.hidden_act);
  EXPECT_FALSE(stated.tie_word_embeddings || stated.use_moe || stated.inference_rope_scaling);
  EXPECT_FALSE(stated.intermediate_size_is_null);
  EXPECT_EQ(stated.multiple_of, 64u);
  EXPECT_TRUE(stated.eos_token_id.empty());
  EXPECT_TRUE(stated.unused.empty());
}

TEST(StatedConfig, ReadsHuggingFaceNames) {
  const StatedConfig stated = parse(R"({"model_type": "minimind", "vocab_size": 6400, "hidden_size": 768,
      "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 96,
      "intermediate_size": 2432, "moe_intermediate_size": 100, "max_position_embeddings": 32768, "num_experts": 4,
      "num_experts_per_tok": 1, "n_shared_experts": 2, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
      "tie_word_embeddings": false, "norm_topk_prob": true, "use_moe": true, "inference_rope_scaling": false,
      "hidden_act": "silu", "eos_token_id": 2, "multiple_of": 32, "ffn_dim_multiplier": 1.5})");
  EXPECT_EQ(stated.model_type, "minimind");
  EXPECT_EQ(stated.vocab_size, 6400u);
  EXPECT_EQ(stated.hidden_size, 768u);
  EXPECT_EQ(stated.num_hidden_layers, 8u);
  EXPECT_EQ(stated.num_attention_heads, 8u);
  EXPECT_EQ(stated.num_key_value_heads, 4u);
  EXPECT_EQ(stated.head_dim, 96u);
  EXPECT_EQ(stated.intermediate_size, 2432u);
  EXPECT_EQ(stated.moe_intermediate_size, 100u);
  EXPECT_EQ(stated.max_position_embeddings, 32768u);
  EXPECT_EQ(stated.num_experts, 4u);
  EXPECT_EQ(stated.num_experts_per_tok, 1u);
  EXPECT_EQ(stated.n_shared_experts, 2u);
  EXPECT_EQ(stated.rms_norm_eps, 1e-6);
  EXPECT_EQ(stated.rope_theta, 1e6);
  EXPECT_EQ(stated.tie_word_embeddings, false);
  EXPECT_EQ(stated.norm_topk_prob, true);
  EXPECT_EQ(stated.use_moe, true);
  EXPECT_EQ(stated.inference_rope_scaling, false);
  EXPECT_EQ(stated.hidden_act, HiddenAct::silu);
  EXPECT_EQ(stated.eos_token_id, std::vector<std::int32_t>{2});
  EXPECT_EQ(stated.multiple_of, 32u);
  EXPECT_EQ(stated.ffn_dim_multiplier, 1.5);
  EXPECT_TRUE(stated.unused.empty());
}

TEST(StatedConfig, ReadsTheNamesOfLMConfig) {
  const StatedConfig stated = parse(R"({"dim": 512, "n_layers": 8, "n_heads": 16, "n_kv_heads": 8, "vocab_size": 6400,
      "hidden_dim": 1408, "norm_eps": 1e-5, "max_seq_len": 512, "n_routed_experts": 4})");
  EXPECT_EQ(stated.hidden_size, 512u);
  EXPECT_EQ(stated.num_hidden_layers, 8u);
  EXPECT_EQ(stated.num_attention_heads, 16u);
  EXPECT_EQ(stated.num_key_value_heads, 8u);
  EXPECT_EQ(stated.intermediate_size, 1408u);
  EXPECT_EQ(stated.rms_norm_eps, 1e-5);
  EXPECT_EQ(stated.max_seq_len, 512u);
  EXPECT_EQ(stated.max_position_embeddings, std::nullopt);
  EXPECT_EQ(stated.num_experts, 4u);
  EXPECT_TRUE(stated.unused.empty());
}

TEST(StatedConfig, TwoNamesOfOneThingMustAgree) {
  EXPECT_EQ(parse(R"({"hidden_size": 512, "dim": 512})").hidden_size, 512u);
  EXPECT_EQ(parse(R"({"hidden_size": null, "dim": 512})").hidden_size, 512u);
  expect_parse_error(R"({"hidden_size": 512, "dim": 768})", {"dim is 768", "hidden_size = 512"});
}

TEST(StatedConfig, DistinguishesNullAbsentAndStatedIntermediateSizes) {
  EXPECT_FALSE(parse("{}").intermediate_size_is_null);
  for (const char* text : {R"({"intermediate_size": null})", R"({"hidden_dim": null})"}) {
    const StatedConfig stated = parse(text);
    EXPECT_TRUE(stated.intermediate_size_is_null) << text;
    EXPECT_FALSE(stated.intermediate_size) << text;
  }
  const StatedConfig stated = parse(R"({"intermediate_size": 1408, "hidden_dim": null})");
  EXPECT_FALSE(stated.intermediate_size_is_null);
  EXPECT_EQ(stated.intermediate_size, 1408u);
}

TEST(StatedConfig, NullIsAsGoodAsAbsentForEveryField) {
  std::string text = R"({"model_type": null, "rms_norm_eps": null, "rope_theta": null, "rope_scaling": null,
      "rope_parameters": null, "hidden_act": null, "eos_token_id": null, "tie_word_embeddings": null,
      "use_moe": null, "norm_topk_prob": null, "inference_rope_scaling": null, "ffn_dim_multiplier": null,
      "scoring_func": null, "use_sliding_window": null, "partial_rotary_factor": null)";
  for (const std::string& key : size_keys) text += ", \"" + key + "\": null";
  const StatedConfig stated = parse(text + "}");
  EXPECT_FALSE(stated.model_type || stated.vocab_size || stated.rope_theta || stated.use_moe);
  EXPECT_TRUE(stated.unused.empty());
}

TEST(StatedConfig, ASizeMustBeAWholeNumberThatAModelCanHave) {
  for (const std::string& key : size_keys) {
    for (const char* bad : {"-1", "1.5", "512.0", "\"512\"", "[512]", "{}", "16777217", "18446744073709551616", "1e3",
                            "-9223372036854775808"}) {
      expect_parse_error("{\"" + key + "\": " + bad + "}", {key, bad[0] == '[' ? "[512]" : ""});
    }
    if (key == "n_shared_experts") continue;
    expect_parse_error("{\"" + key + "\": true}", {key + " is true"});
  }
  EXPECT_EQ(parse(R"({"vocab_size": 16777216})").vocab_size, 16777216u);
}

TEST(StatedConfig, MultipleOfIsAtLeastOne) {
  expect_parse_error(R"({"multiple_of": 0})", {"multiple_of", "at least 1"});
}

TEST(StatedConfig, ARealNumberMustBePositiveAndFinite) {
  for (const char* key : {"rms_norm_eps", "norm_eps", "rope_theta", "ffn_dim_multiplier"}) {
    for (const char* bad : {"0", "-1e-5", "\"1e-5\"", "true", "[1]", "{}", "1e31", "1e-320", "1.1e-38"}) {
      expect_parse_error(std::string("{\"") + key + "\": " + bad + "}", {key, "positive number"});
    }
  }
  expect_parse_error(R"({"ffn_dim_multiplier": 1001})", {"ffn_dim_multiplier", "at most 1000"});
  EXPECT_EQ(parse(R"({"rope_theta": 10000})").rope_theta, 1e4);
  EXPECT_EQ(parse(R"({"rms_norm_eps": 1.2e-38})").rms_norm_eps, 1.2e-38);
}

TEST(StatedConfig, InvalidNumbersAreRejected) {
  for (const char* bad : {"NaN", "Infinity", "-Infinity", "nan", "1e999", "0x10", "01", "+1", "1,"}) {
    EXPECT_NE(parse_error(std::string("{\"rope_theta\": ") + bad + "}"), "") << bad;
  }
}

TEST(StatedConfig, AFlagMustBeTrueOrFalse) {
  for (const char* key :
       {"tie_word_embeddings", "norm_topk_prob", "use_moe", "inference_rope_scaling", "use_sliding_window"}) {
    for (const char* bad : {"0", "1", "\"true\"", "[]", "{}"}) {
      expect_parse_error(std::string("{\"") + key + "\": " + bad + "}", {key, "true or false"});
    }
  }
}

TEST(StatedConfig, ANameMustBeAString) {
  for (const char* key : {"model_type", "hidden_act", "scoring_func"}) {
    expect_parse_error(std::string("{\"") + key + "\": 3}", {std::string(key) + " is 3", "a string"});
  }
}

TEST(StatedConfig, SharedExpertsMayBeTrueFalseOrANumber) {
  EXPECT_EQ(parse(R"({"n_shared_experts": true})").n_shared_experts, 1u);
  EXPECT_EQ(parse(R"({"n_shared_experts": false})").n_shared_experts, 0u);
  EXPECT_EQ(parse(R"({"n_shared_experts": 2})").n_shared_experts, 2u);
  EXPECT_FALSE(parse(R"({"n_shared_experts": null})").n_shared_experts);
}

TEST(StatedConfig, EndOfTextIsOneIdOrAList) {
  EXPECT_EQ(parse(R"({"eos_token_id": 2})").eos_token_id, (std::vector<std::int32_t>{2}));
  EXPECT_EQ(parse(R"({"eos_token_id": [151645, 151643]})").eos_token_id, (std::vector<std::int32_t>{151645, 151643}));
  EXPECT_EQ(parse(R"({"eos_token_id": [2, 0, 2]})").eos_token_id, (std::vector<std::int32_t>{2, 0})) << "each once";
  EXPECT_TRUE(parse(R"({"eos_token_id": []})").eos_token_id.empty());
  EXPECT_TRUE(parse(R"({"eos_token_id": -1})").eos_token_id.empty()) << "how some say that there is none";
  for (const char* bad : {"\"2\"", "2.0", "true", "[[2]]", "[null]", "{\"a\": 2}", "4294967298"}) {
    expect_parse_error(std::string("{\"eos_token_id\": ") + bad + "}", {"eos_token_id", "token ids"});
  }
}

TEST(StatedConfig, EverySpellingOfAnActivationIsKnown) {
  const std::vector<std::pair<std::string, HiddenAct>> spellings{
      {"silu", HiddenAct::silu},          {"swish", HiddenAct::silu},   {"sigmoid", HiddenAct::sigmoid},
      {"relu", HiddenAct::relu},          {"gelu", HiddenAct::gelu},    {"gelu_pytorch_tanh", HiddenAct::gelu_tanh},
      {"gelu_new", HiddenAct::gelu_tanh}, {"linear", HiddenAct::linear}};
  for (const auto& [name, act] : spellings) {
    EXPECT_EQ(parse_hidden_act(name, "--hidden-act"), act) << name;
    EXPECT_EQ(parse("{\"hidden_act\": \"" + name + "\"}").hidden_act, act) << name;
  }
  for (const auto& [act, name] : hidden_act_names) {
    EXPECT_EQ(parse_hidden_act(std::string(name), "x"), act) << name;
    EXPECT_EQ(parse_hidden_act(std::string(name_of(act)), "x"), act) << "the names we write can be read";
  }
}

TEST(StatedConfig, AnUnknownActivationIsNamedWithThoseKnown) {
  expect_parse_error(R"({"hidden_act": "mish"})", {"hidden_act", "mish", "silu", "gelu_pytorch_tanh", "linear"});
  expect_parse_error(R"({"hidden_act": "SiLU"})", {"SiLU"});
  expect_parse_error(R"({"hidden_act": ""})", {"hidden_act"});
}

TEST(StatedConfig, RopeThetaIsAtTheTopOrInTheRopeParameters) {
  EXPECT_EQ(parse(R"({"rope_theta": 1e6})").rope_theta, 1e6);
  EXPECT_EQ(parse(R"({"rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}})").rope_theta, 1e6);
  EXPECT_EQ(parse(R"({"rope_theta": 1e6, "rope_parameters": {"rope_theta": 1000000}})").rope_theta, 1e6);
  expect_parse_error(R"({"rope_theta": 1e4, "rope_parameters": {"rope_theta": 1e6}})",
                     {"rope_theta", "1000000", "10000"});
  expect_parse_error(R"({"rope_parameters": {"rope_theta": -1}})", {"rope_parameters", "rope_theta is -1"});
}

TEST(StatedConfig, DefaultRopeScalingIsNone) {
  for (const char* text : {R"({"rope_scaling": {"rope_type": "default"}})", R"({"rope_scaling": {}})",
                           R"({"rope_parameters": {"rope_theta": 1e6}})", R"({"rope_scaling": null})"}) {
    EXPECT_FALSE(parse(text).rope_scaling) << text;
  }
}

TEST(StatedConfig, LinearRopeScalingRequiresAFactor) {
  const auto scaling = parse(R"({"rope_scaling": {"type": "linear", "factor": 4}})").rope_scaling;
  ASSERT_TRUE(scaling);
  EXPECT_EQ(scaling->kind, RopeScaling::Kind::linear);
  EXPECT_EQ(scaling->factor, 4.0);
  expect_parse_error(R"({"rope_scaling": {"type": "linear"}})", {"linear", "factor"});
  expect_parse_error(R"({"rope_scaling": {"type": "linear", "factor": 0}})", {"factor is 0", "positive"});
}

TEST(StatedConfig, YarnAsMiniMindWritesIt) {
  const auto scaling = parse(R"({"model_type": "minimind", "inference_rope_scaling": true, "rope_scaling":
      {"type": "yarn", "factor": 4, "beta_fast": 16, "beta_slow": 2, "original_max_position_embeddings": 1024,
       "attention_factor": 1.5}})")
                           .rope_scaling;
  ASSERT_TRUE(scaling);
  EXPECT_EQ(scaling->kind, RopeScaling::Kind::yarn);
  EXPECT_EQ(scaling->ramp_end, RopeScaling::RampEnd::half_head_dim);
  EXPECT_EQ(scaling->factor, 4.0);
  EXPECT_EQ(scaling->original_max_position_embeddings, 1024.0);
  EXPECT_EQ(scaling->beta_fast, 16.0);
  EXPECT_EQ(scaling->beta_slow, 2.0);
  EXPECT_EQ(scaling->attention_factor, 1.5);
}

// As the code of October 2025 wrote it.
TEST(StatedConfig, TheFirstYarnOfMiniMindIsRejected) {
  const std::string yarn = R"("rope_scaling": {"beta_fast": 4, "beta_slow": 1, "factor": 4,
      "original_max_position_embeddings": 2048, "type": "yarn"}})";
  expect_parse_error(R"({"model_type": "minimind", "inference_rope_scaling": true, )" + yarn,
                     {"first YaRN", "to false"});
  EXPECT_EQ(parse(R"({"model_type": "minimind", "inference_rope_scaling": false, )" + yarn).inference_rope_scaling,
            false);
}

TEST(StatedConfig, MiniMindsYarnHasItsOwnDefaults) {
  const auto scaling = parse(R"({"rope_scaling": {"type": "yarn"}})").rope_scaling;
  ASSERT_TRUE(scaling);
  EXPECT_EQ(scaling->factor, 16.0);
  EXPECT_EQ(scaling->original_max_position_embeddings, 2048.0);
  EXPECT_EQ(scaling->beta_fast, 32.0);
  EXPECT_EQ(scaling->beta_slow, 1.0);
  EXPECT_EQ(scaling->attention_factor, 1.0);
}

// transformers: modeling_rope_utils._compute_yarn_parameters.
TEST(StatedConfig, YarnOfTransformersDefaultsAsItsCodeDoes) {
  const auto scaling = parse(R"({"model_type": "qwen3", "max_position_embeddings": 4096,
      "rope_scaling": {"rope_type": "yarn", "factor": 8}})")
                           .rope_scaling;
  ASSERT_TRUE(scaling);
  EXPECT_EQ(scaling->ramp_end, RopeScaling::RampEnd::head_dim);
  EXPECT_EQ(scaling->original_max_position_embeddings, 4096.0);
  EXPECT_DOUBLE_EQ(scaling->attention_factor, 0.1 * std::log(8.0) + 1);
  const auto below = parse(R"({"model_type": "llama", "rope_scaling": {"rope_type": "yarn", "factor": 0.5}})");
  EXPECT_EQ(below.rope_scaling->attention_factor, 1.0);
  expect_parse_error(R"({"model_type": "qwen3", "rope_scaling": {"rope_type": "yarn"}})", {"yarn", "factor"});
}

TEST(StatedConfig, UnsupportedYarnSettingsAreRejectedNamingThem) {
  for (const char* key : {"mscale", "mscale_all_dim", "truncate"}) {
    expect_parse_error(std::string(R"({"rope_scaling": {"type": "yarn", "factor": 2, ")") + key + "\": 1}}",
                       {"rope_scaling", key});
  }
}

TEST(StatedConfig, OtherRopeScalingsAreRejectedNamingThem) {
  for (const char* kind : {"dynamic", "longrope", "llama3", "ntk"}) {
    expect_parse_error(std::string(R"({"rope_scaling": {"rope_type": ")") + kind + R"(", "factor": 8}})",
                       {kind, "yarn"});
  }
  expect_parse_error(R"({"rope_scaling": "yarn"})", {"rope_scaling", "a JSON object"});
  expect_parse_error(R"({"rope_scaling": [1]})", {"rope_scaling", "a JSON object"});
  expect_parse_error(R"({"rope_scaling": {"rope_type": 3}})", {"rope_type is 3"});
  expect_parse_error(R"({"rope_scaling": {"rope_type": "linear", "type": "yarn", "factor": 2}})", {"linear", "yarn"});
}

TEST(StatedConfig, SettingsThatChangeTheComputationAreRejectedNamingThem) {
  expect_parse_error(R"({"use_sliding_window": true})", {"use_sliding_window"});
  expect_parse_error(R"({"partial_rotary_factor": 0.5})", {"partial_rotary_factor", "0.5"});
  expect_parse_error(R"({"scoring_func": "sigmoid"})", {"scoring_func", "sigmoid", "softmax"});
  EXPECT_NO_THROW(parse(R"({"use_sliding_window": false, "partial_rotary_factor": 1.0, "scoring_func": "softmax"})"));
}

// transformers 5 moved it there, next to rope_theta.
TEST(StatedConfig, PartialRotaryFactorIsRejectedInTheRopeParametersToo) {
  expect_parse_error(R"({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}})",
                     {"partial_rotary_factor", "0.5"});
  EXPECT_NO_THROW(parse(R"({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 1.0}})"));
}

TEST(StatedConfig, KeysThatChangeNothingAreListed) {
  StatedConfig stated = parse(R"({"dropout": 0.0, "vocab_size": 6400, "flash_attn": true, "torch_dtype": "float16",
      "rope_scaling": {"type": "linear", "factor": 2, "finetuned": true}})");
  std::sort(stated.unused.begin(), stated.unused.end());
  EXPECT_EQ(stated.unused,
            (std::vector<std::string>{"dropout", "flash_attn", "rope_scaling.finetuned", "torch_dtype"}));
}

TEST(StatedConfig, TextThatIsNotAnObjectIsRejected) {
  for (const char* text :
       {"", "null", "[]", "3", "\"{}\"", "{", "{}}", "{\"a\": 1,}", "{'a': 1}", "\xff\xfe{}", "PK\x03\x04"}) {
    expect_parse_error(text, {"JSON object"});
  }
}

// What is found comes from a file: it must not break the line, nor write to the terminal.
TEST(StatedConfig, StringsOfTheFileAreShownSafelyAndInShort) {
  const std::string nasty = "a\\nb\\u001b[2J";
  for (const char* text : {R"({"hidden_act": "%"})", R"({"rope_scaling": {"rope_type": "%"}})",
                           R"({"scoring_func": "%"})", R"({"vocab_size": "%"})", R"({"eos_token_id": ["%"]})"}) {
    for (const std::string& value : {nasty, std::string(5000, 'x'), std::string(59, 'x') + "模型"}) {
      std::string filled = text;
      const std::string error = parse_error(filled.replace(filled.find('%'), 1, value));
      EXPECT_EQ(error.find('\x1b'), std::string::npos) << text;
      EXPECT_NO_THROW(nlohmann::json(error).dump()) << "a message is UTF-8: " << text;
    }
  }
}

TEST(StatedConfig, DeepNestingIsRejectedWithoutOverflowingTheStack) {
  constexpr std::size_t depth = 1'000'000;
  const std::string nested = std::string(depth, '[') + std::string(depth, ']');
  for (const char* key : {"vocab_size", "eos_token_id", "rope_scaling", "hidden_act"}) {
    EXPECT_NE(parse_error(std::string("{\"") + key + "\": " + nested + "}"), "") << key;
  }
}

TEST(ConfigJson, EndsOfTextHaveALimit) {
  std::vector<std::int32_t> ids(most_end_ids);
  std::iota(ids.begin(), ids.end(), 0);
  EXPECT_EQ(parse(nlohmann::json{{"eos_token_id", ids}}.dump()).eos_token_id, ids);
  ids.push_back(0);
  expect_parse_error(nlohmann::json{{"eos_token_id", ids}}.dump(),
                     {"eos_token_id is an array of 1025, expected at most"});
}

}  // namespace
}  // namespace minimind
