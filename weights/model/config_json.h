#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weights/model/config.h"

namespace minimind {

// What a config.json says, before it is held against the tensors. A field that is absent or null is empty.
// Hugging Face's names and those of MiniMind's first LMConfig (dim, n_layers, n_heads, ...) mean the same here.
struct StatedConfig {
  std::string source;  // for messages: "config.json", or the path given to --config
  std::optional<std::string> model_type;
  std::optional<Family> family;  // said outright, by a GGUF's architecture or by ours

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

// Whether a family's config is MiniMind's first, LMConfig, where positions are max_seq_len. The configs of later ones
// may hold a max_seq_len, too, which scripts put there beside max_position_embeddings and no model reads.
constexpr bool has_lm_config(Family family) {
  return family == Family::v1 || family == Family::v2_early;
}

// Reads a config.json. `source` names it in messages. Throws Error for text that is no JSON object, for a value of the
// wrong type or range, and by name for settings that change the computation in ways we do not do.
StatedConfig parse_config_json(const std::string& text, const std::string& source);

// MiniMind v1 and v2 where intermediate_size (hidden_dim) is null: int(2 * 4d / 3), times ffn_dim_multiplier where
// given, rounded up to a multiple. 512 -> 1408.
std::size_t default_intermediate_size(std::size_t hidden_size, std::size_t multiple_of,
                                      std::optional<double> ffn_dim_multiplier);

// MiniMind v3: ceil(d * pi / 64) * 64. 768 -> 2432.
std::size_t default_intermediate_size_v3(std::size_t hidden_size);

// The name of an activation as transformers and MiniMind's readers write it. Throws Error, listing those known.
HiddenAct parse_hidden_act(const std::string& name, const std::string& source);

}  // namespace minimind
