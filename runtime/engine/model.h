#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "runtime/engine/packed_matrix.h"
#include "runtime/engine/rope.h"
#include "weights/model/config.h"

namespace minimind {

// In the shapes: d = hidden_size, H = num_attention_heads, K = num_key_value_heads, F = the hidden width of the FFN.

struct Attention {
  WeightMatrix q_proj;        // [H * head_dim, d]
  WeightMatrix k_proj;        // [K * head_dim, d]
  WeightMatrix v_proj;        // [K * head_dim, d]
  WeightMatrix o_proj;        // [d, H * head_dim]
  std::vector<float> q_norm;  // [head_dim], or empty (v1, v2, llama)
  std::vector<float> k_norm;  // [head_dim], or empty
};

// down(act(gate x + gate_bias) * (up x + up_bias)) + down_bias; without a gate, down(act(up x + up_bias)) + down_bias.
struct FeedForward {
  std::optional<WeightMatrix> gate_proj;  // [F, d]
  WeightMatrix up_proj;                   // [F, d]
  WeightMatrix down_proj;                 // [d, F]
  std::vector<float> gate_bias;           // [F], or empty
  std::vector<float> up_bias;             // [F], or empty
  std::vector<float> down_bias;           // [d], or empty
};

// Each token goes through the experts_per_token experts with the largest softmax(router x), weighted, and through all
// shared experts, unweighted.
struct MixtureOfExperts {
  WeightMatrix router;               // [routed_experts, d]; always f32, so that routing is exact
  std::vector<FeedForward> experts;  // the routed ones, then the shared ones
  std::size_t routed_experts = 0;
  std::size_t experts_per_token = 0;
  bool normalize = true;  // divide the chosen weights by their sum
};

struct Layer {
  std::vector<float> input_layernorm;  // [d]
  Attention attention;
  std::vector<float> post_attention_layernorm;  // [d]
  std::variant<FeedForward, MixtureOfExperts> mlp;
};

struct Model {
  Config config;
  Rope rope;
  WeightMatrix embed_tokens;  // [vocab_size, d]
  std::vector<Layer> layers;
  std::vector<float> norm;              // [d]
  std::optional<WeightMatrix> lm_head;  // [vocab_size, d]; absent if tied to embed_tokens
  const Rounding* rounding = nullptr;   // of the inputs of all matrices; null if each takes exact ones
  std::vector<Fact> type_fallbacks;     // matrices not kept as requested: one per reason, "kept NAME as f16: WHY"

  const WeightMatrix& output() const { return lm_head ? *lm_head : embed_tokens; }
};

}  // namespace minimind
