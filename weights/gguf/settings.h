#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "weights/gguf/metadata.h"
#include "weights/model/config_json.h"

namespace minimind {

// Tensor names in GGUF files, as in llama.cpp's architectures `llama`, `qwen3`, `qwen3moe` and `bailingmoe`, next to
// our own. A layer's names start with "blk.N.".
using NamePair = std::pair<std::string_view, std::string_view>;  // GGUF's, canonical

inline constexpr std::string_view gguf_layer_prefix = "blk.";

inline constexpr std::array<NamePair, 3> gguf_model_names{{
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"},
}};

// After "blk.N." and "model.layers.N.".
inline constexpr std::array<NamePair, 15> gguf_layer_names{{
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate_inp.weight", "mlp.gate.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
    {"ffn_gate.bias", "mlp.gate_proj.bias"},
    {"ffn_up.bias", "mlp.up_proj.bias"},
    {"ffn_down.bias", "mlp.down_proj.bias"},
}};

// The three matrices of one FFN and, in our own architecture, their biases: "ffn_" + part + kind + "weight" for the
// canonical part + "_proj.weight".
inline constexpr std::array<std::string_view, 3> gguf_network_parts{"gate", "up", "down"};

// The experts of a layer are one tensor. The kind is between the part and "weight" or "bias":
inline constexpr std::string_view gguf_routed_experts = "_exps.";    // stacked: [experts, F, d]
inline constexpr std::string_view gguf_shared_experts = "_shexps.";  // stacked, too, in our own architecture
inline constexpr std::string_view gguf_shared_network = "_shexp.";   // one FFN of width shared * F, in bailingmoe

// Architectures of llama.cpp, and our own for models that none of them computes exactly.
inline constexpr std::string_view gguf_llama = "llama";
inline constexpr std::string_view gguf_qwen3 = "qwen3";
inline constexpr std::string_view gguf_qwen3moe = "qwen3moe";
inline constexpr std::string_view gguf_bailingmoe = "bailingmoe";
inline constexpr std::string_view gguf_minimind = "minimind";

// Our own metadata, which other programs ignore.
inline constexpr std::string_view gguf_family = "minimind.family";            // name_of(Family)
inline constexpr std::string_view gguf_vector_type = "minimind.vector_type";  // of norms and routers in the original
inline constexpr std::string_view gguf_eos_token_ids = "minimind.eos_token_ids";  // any of them ends generation
inline constexpr std::string_view gguf_hidden_act = "minimind.hidden_act";        // name_of(HiddenAct)
inline constexpr std::string_view gguf_norm_topk_prob =
    "minimind.norm_topk_prob";  // stated if one expert per token is not divided
inline constexpr std::string_view gguf_ramp_end = "minimind.rope.scaling.ramp_end";
inline constexpr std::string_view gguf_half_head_dim = "half_head_dim";
inline constexpr std::string_view gguf_head_dim = "head_dim";

// Reads the hyper-parameters in the metadata of a GGUF file of one of the architectures above, as a config.json states
// them. `source` names the file in messages. Throws Error, naming the key, for values of the wrong type or range.
// Settings that would change the computation and are unsupported also throw Error.
StatedConfig gguf_settings(const GgufMetadata& metadata, const std::string& source);

// llama.cpp's YaRN multiplies sines and cosines by `attn_factor` (1 + 0.1 ln factor); transformers and MiniMind
// multiply them by the attention factor itself. Returns the attn_factor to state in a GGUF for an attention factor.
float gguf_attention_factor(double attention_factor, double yarn_factor);

}  // namespace minimind
