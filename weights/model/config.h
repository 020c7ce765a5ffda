#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numbers>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/fact.h"
#include "weights/model/hidden_act.h"

namespace minimind {

// The code that wrote the checkpoint: the four MiniMind generations, then the Hugging Face classes of its exports.
enum class Family { v1, v2_early, v2, v3, llama, qwen3, qwen3_moe };

inline constexpr std::string_view family_names[] = {"v1", "v2-early", "v2", "v3", "llama", "qwen3", "qwen3_moe"};

constexpr std::string_view name_of(Family family) {
  return family_names[static_cast<std::size_t>(family)];
}

// The two values of a head that RoPE rotates together: (2i, 2i + 1), or (i, i + head_dim / 2).
enum class RopeLayout { adjacent_pairs, halves };

constexpr RopeLayout rope_layout(Family family) {
  return family == Family::v1 || family == Family::v2_early ? RopeLayout::adjacent_pairs : RopeLayout::halves;
}

// Returns true if queries and keys are normalised per head before RoPE.
constexpr bool has_q_norm(Family family) {
  return family == Family::v3 || family == Family::qwen3 || family == Family::qwen3_moe;
}

// How RoPE frequencies are stretched for contexts longer than those in training.
struct RopeScaling {
  enum class Kind { linear, yarn };
  // MiniMind's YaRN (arXiv:2309.00071) clamps the end of its ramp to head_dim / 2 - 1; transformers clamps it to
  // head_dim - 1.
  enum class RampEnd { half_head_dim, head_dim };

  Kind kind = Kind::yarn;
  RampEnd ramp_end = RampEnd::half_head_dim;
  double factor = 16;
  double original_max_position_embeddings = 2048;
  double beta_fast = 32;
  double beta_slow = 1;
  double attention_factor = 1;
};

// Hyper-parameters under their Hugging Face names. Every value is set and checked against the tensors.
struct Config {
  Family family = Family::v3;
  std::size_t vocab_size = 0;
  std::size_t hidden_size = 0;
  std::size_t num_hidden_layers = 0;
  std::size_t num_attention_heads = 0;
  std::size_t num_key_value_heads = 0;
  std::size_t head_dim = 0;
  std::size_t intermediate_size = 0;  // of a dense layer; of an expert if all layers are MoE layers
  HiddenAct hidden_act = HiddenAct::silu;
  std::size_t max_position_embeddings = 0;
  double rms_norm_eps = 0;
  double rope_theta = 0;
  std::optional<RopeScaling> rope_scaling;
  bool tie_word_embeddings = true;

  std::size_t num_experts = 0;  // routed experts of an MoE layer; 0: all layers are dense, the rest is unused
  std::size_t num_experts_per_tok = 0;
  std::size_t n_shared_experts = 0;
  std::size_t moe_intermediate_size = 0;
  bool norm_topk_prob = true;

  std::vector<std::int32_t> eos_token_id;  // any of them ends generation
};

// The limit on ids that a file states: each is compared with every token. Real models have one to ten.
inline constexpr std::size_t most_end_ids = 1024;

// The source of the value of a field of Config, with the place or reason.
struct ConfigSource {
  enum class Kind {
    tensors,  // detail: "rows of embed_tokens"
    config,   // detail: the file, "config.json"
    caller,   // ConfigOverrides; no detail
    assumed,  // not stated; detail: "what v2 uses"
    usual,    // not requested otherwise; detail: "off unless requested"
  };
  Kind kind = Kind::tensors;
  Fact detail = {};
};

// Sources by the field's name.
using ConfigSources = std::map<std::string, ConfigSource>;

// Returns true if the weights of the chosen experts are divided by their sum. v1 and v2 do so only for several experts.
// v3 and Qwen3 do so for one expert too, whose weight becomes 1.
constexpr bool normalizes_router(const Config& config) {
  const bool also_single = config.family == Family::v3 || config.family == Family::qwen3_moe;
  return config.norm_topk_prob && (config.num_experts_per_tok > 1 || also_single);
}

// Hyper-parameters that the caller sets, with precedence over the config.
struct ConfigOverrides {
  std::optional<std::size_t> heads;
  std::optional<std::size_t> kv_heads;
  std::optional<std::size_t> experts_per_token;
  std::optional<bool> yarn;  // YaRN, or no RoPE scaling
};

// The pairs of a head between which YaRN (Peng et al. 2023, arXiv:2309.00071) goes from unchanged to divided
// frequencies.
struct YarnRamp {
  double low;   // a pair that rotates beta_fast times within the original context
  double high;  // a pair that rotates beta_slow times; below low: a step at low
};

// Returns the ramp with its end clamped there. config.rope_scaling must be YaRN.
inline YarnRamp yarn_ramp(const Config& config, RopeScaling::RampEnd end) {
  const RopeScaling& yarn = *config.rope_scaling;
  const double d = static_cast<double>(config.head_dim);
  const auto pair_that_turns = [&](double times) {
    return d * std::log(yarn.original_max_position_embeddings / (times * 2 * std::numbers::pi)) /
           (2 * std::log(config.rope_theta));
  };
  const double last = end == RopeScaling::RampEnd::half_head_dim ? d / 2 - 1 : d - 1;
  return {std::max(std::floor(pair_that_turns(yarn.beta_fast)), 0.0),
          std::min(std::ceil(pair_that_turns(yarn.beta_slow)), last)};
}

}  // namespace minimind
