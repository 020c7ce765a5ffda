#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weights/model/config.h"

namespace minimind {

// What a config.json says, before it is checked against the tensors. A field that is absent or null is empty.
// Hugging Face's names and those of MiniMind's first LMConfig (dim, n_layers, n_heads, ...) mean the same here.
struct StatedConfig {
  std::string source;  // for messages: the path of the file, or that it is the metadata of one
  std::optional<std::string> model_type;
  std::optional<Family> family;  // stated, by a GGUF's architecture or by ours

  std::optional<std::size_t> vocab_size, hidden_size, num_hidden_layers, num_attention_heads, num_key_value_heads;
  std::optional<std::size_t> head_dim, intermediate_size, moe_intermediate_size, max_position_embeddings;
  std::optional<std::size_t> max_seq_len;  // the positions of a model that has_lm_config; others do not use it
  std::optional<std::size_t> num_experts, num_experts_per_tok, n_shared_experts;
  std::optional<double> rms_norm_eps, rope_theta;
  std::optional<bool> tie_word_embeddings, norm_topk_prob, use_moe, inference_rope_scaling;
  std::optional<HiddenAct> hidden_act;
  std::optional<RopeScaling> rope_scaling;
  std::vector<std::int32_t> eos_token_id;

  // MiniMind's rule for an intermediate_size that is left null; see default_intermediate_size.
  bool intermediate_size_is_null = false;
  std::size_t multiple_of = 64;
  std::optional<double> ffn_dim_multiplier;

  std::size_t settings = 0;         // how many keys mean something here
  std::vector<std::string> unused;  // keys that do not change what is computed here, such as dropout
};

// A hyper-parameter that is one number or flag: all that reading, writing and showing it takes. Which value it has
// if nothing states it is in infer_config.cpp.
struct HyperParameter {
  template <class Value>
  struct Members {
    Value Config::*config;
    std::optional<Value> StatedConfig::*stated;
  };
  std::string_view name;        // Hugging Face's
  std::string_view other_name;  // in a config.json of MiniMind or others; empty if there is none
  std::string_view gguf_key;    // what follows "ARCHITECTURE." there; empty if a GGUF has no key for it alone
  bool of_experts;              // meaningless unless the model has experts
  std::variant<Members<std::size_t>, Members<double>, Members<bool>> members;
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
     HyperParameter::Members<double>{&Config::rope_theta, &StatedConfig::rope_theta}},
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

// Whether a family's config is MiniMind's first, LMConfig, whose positions are max_seq_len. The configs of later ones
// may hold a max_seq_len, too, which scripts put there next to max_position_embeddings and no model reads.
constexpr bool has_lm_config(Family family) {
  return family == Family::v1 || family == Family::v2_early;
}

// Reads a config.json. `source` names it in messages. Throws Error for text that is not a JSON object, for a value of
// the wrong type or range, and by name for settings that change the computation in ways we do not do.
StatedConfig parse_config_json(const std::string& text, const std::string& source);

// MiniMind v1 and v2 if intermediate_size (hidden_dim) is null: int(2 * 4d / 3), times ffn_dim_multiplier if
// given, rounded up to a multiple. 512 -> 1408.
std::size_t default_intermediate_size(std::size_t hidden_size, std::size_t multiple_of,
                                      std::optional<double> ffn_dim_multiplier);

// MiniMind v3: ceil(d * pi / 64) * 64. 768 -> 2432.
std::size_t default_intermediate_size_v3(std::size_t hidden_size);

// The name of an activation as transformers and MiniMind's readers write it. Throws Error, listing those known.
HiddenAct parse_hidden_act(const std::string& name, const std::string& source);

}  // namespace minimind
