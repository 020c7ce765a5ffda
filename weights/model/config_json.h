#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weights/model/config.h"

namespace minimind {

// The contents of a config.json, before they are checked against the tensors. A field that is absent or null is empty.
// Hugging Face's names and those of MiniMind's first LMConfig (dim, n_layers, n_heads, ...) are equivalent.
struct StatedConfig {
  std::string source;  // for messages: the path of the file, or "the metadata of" a path
  // The places of fields, by Hugging Face's name, that are stated elsewhere than in `source`.
  std::map<std::string, std::string, std::less<>> places;
  std::optional<std::string> model_type;
  std::optional<Family> family;  // by a GGUF's architecture or our own metadata

  std::optional<std::size_t> vocab_size, hidden_size, num_hidden_layers, num_attention_heads, num_key_value_heads;
  std::optional<std::size_t> head_dim, intermediate_size, moe_intermediate_size, max_position_embeddings;
  std::optional<std::size_t> max_seq_len;  // the positions of a family that has_lm_config; unused by others
  std::optional<std::size_t> num_experts, num_experts_per_tok, n_shared_experts;
  std::optional<double> rms_norm_eps, rope_theta;
  std::optional<bool> tie_word_embeddings, norm_topk_prob, use_moe, inference_rope_scaling, is_causal;
  std::optional<HiddenAct> hidden_act;
  std::optional<RopeScaling> rope_scaling;
  std::vector<std::int32_t> eos_token_id;

  // MiniMind's rule for an intermediate_size that is null; see default_intermediate_size.
  bool intermediate_size_is_null = false;
  std::size_t multiple_of = 64;
  std::optional<double> ffn_dim_multiplier;

  std::size_t settings = 0;         // the number of recognised keys
  std::vector<std::string> unused;  // keys that do not change the computation, such as dropout
};

// A hyper-parameter that is one number or flag, described for reading, writing and printing it. Its default is in
// infer_config.cpp.
struct HyperParameter {
  template <class Value>
  struct Members {
    Value Config::*config;
    std::optional<Value> StatedConfig::*stated;
  };
  std::string_view name;        // Hugging Face's
  std::string_view other_name;  // second name in a config.json; empty if there is none
  std::string_view gguf_key;    // after "ARCHITECTURE."; empty if a GGUF has no separate key
  bool of_experts;              // unused unless the model has experts
  std::variant<Members<std::size_t>, Members<double>, Members<bool>> members;
  double gguf_default = 0;  // llama.cpp's value of a number that a GGUF omits; 0: none
};

// In the order of a GGUF's metadata.
inline constexpr std::array<HyperParameter, 16> hyper_parameters{{
    {"vocab_size", "", "vocab_size", false,
     HyperParameter::Members<std::size_t>{&Config::vocab_size, &StatedConfig::vocab_size}},
    {"max_position_embeddings", "", "context_length", false,
     HyperParameter::Members<std::size_t>{&Config::max_position_embeddings, &StatedConfig::max_position_embeddings}},
    {"hidden_size", "dim", "embedding_length", false,
     HyperParameter::Members<std::size_t>{&Config::hidden_size, &StatedConfig::hidden_size}},
    {"num_hidden_layers", "n_layers", "block_count", false,
     HyperParameter::Members<std::size_t>{&Config::num_hidden_layers, &StatedConfig::num_hidden_layers}},
    {"intermediate_size", "hidden_dim", "feed_forward_length", false,
     HyperParameter::Members<std::size_t>{&Config::intermediate_size, &StatedConfig::intermediate_size}},
    {"num_attention_heads", "n_heads", "attention.head_count", false,
     HyperParameter::Members<std::size_t>{&Config::num_attention_heads, &StatedConfig::num_attention_heads}},
    {"num_key_value_heads", "n_kv_heads", "attention.head_count_kv", false,
     HyperParameter::Members<std::size_t>{&Config::num_key_value_heads, &StatedConfig::num_key_value_heads}},
    {"head_dim", "", "attention.key_length", false,
     HyperParameter::Members<std::size_t>{&Config::head_dim, &StatedConfig::head_dim}},
    {"rms_norm_eps", "norm_eps", "attention.layer_norm_rms_epsilon", false,
     HyperParameter::Members<double>{&Config::rms_norm_eps, &StatedConfig::rms_norm_eps}},
    {"rope_theta", "", "rope.freq_base", false,
     HyperParameter::Members<double>{&Config::rope_theta, &StatedConfig::rope_theta}, 10000},
    {"tie_word_embeddings", "", "", false,
     HyperParameter::Members<bool>{&Config::tie_word_embeddings, &StatedConfig::tie_word_embeddings}},
    {"num_experts", "n_routed_experts", "expert_count", true,
     HyperParameter::Members<std::size_t>{&Config::num_experts, &StatedConfig::num_experts}},
    {"num_experts_per_tok", "", "expert_used_count", true,
     HyperParameter::Members<std::size_t>{&Config::num_experts_per_tok, &StatedConfig::num_experts_per_tok}},
    {"moe_intermediate_size", "", "expert_feed_forward_length", true,
     HyperParameter::Members<std::size_t>{&Config::moe_intermediate_size, &StatedConfig::moe_intermediate_size}},
    {"n_shared_experts", "", "expert_shared_count", true,
     HyperParameter::Members<std::size_t>{&Config::n_shared_experts, &StatedConfig::n_shared_experts}},
    {"norm_topk_prob", "", "", true,
     HyperParameter::Members<bool>{&Config::norm_topk_prob, &StatedConfig::norm_topk_prob}},
}};

// Returns true if a family's config is MiniMind's first, LMConfig, whose positions are max_seq_len. Later configs may
// have a max_seq_len, too, which scripts put next to max_position_embeddings and no model reads.
constexpr bool has_lm_config(Family family) {
  return family == Family::v1 || family == Family::v2_early;
}

// Reads a config.json. `source` names it in messages. Throws Error for text that is not a JSON object and for a value
// of the wrong type or range. Unsupported settings that change the computation also throw Error, which names the
// setting.
StatedConfig parse_config_json(const std::string& text, const std::string& source);

// Returns the intermediate_size of MiniMind v1 and v2 if it is null: int(2 * 4d / 3), times ffn_dim_multiplier if
// given, rounded up to a multiple. 512 -> 1408.
std::size_t default_intermediate_size(std::size_t hidden_size, std::size_t multiple_of,
                                      std::optional<double> ffn_dim_multiplier);

// Returns the intermediate_size of MiniMind v3: ceil(d * pi / 64) * 64. 768 -> 2432.
std::size_t default_intermediate_size_v3(std::size_t hidden_size);

// Parses the name of an activation in transformers' spelling. Throws Error, listing the known names.
HiddenAct parse_hidden_act(const std::string& name, const std::string& source);

}  // namespace minimind
