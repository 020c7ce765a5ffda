#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weights/model/config.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// Tensor names come in two styles. MiniMind v1's are tok_embeddings, layers.N.attention.wq, feed_forward.w1, ... All
// later generations use Hugging Face's: model.embed_tokens, model.layers.N.self_attn.q_proj, mlp.gate_proj, ...
enum class NamingStyle { v1, hugging_face };

// Parts of names: v1's and Hugging Face's. They are replaced in this order, and in the reverse order for v1's names. v1
// has at most one shared expert, without a number.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 13> v1_names{{
    {".attention.wq", ".self_attn.q_proj"},
    {".attention.wk", ".self_attn.k_proj"},
    {".attention.wv", ".self_attn.v_proj"},
    {".attention.wo", ".self_attn.o_proj"},
    {".attention_norm.", ".input_layernorm."},
    {".ffn_norm.", ".post_attention_layernorm."},
    {".feed_forward.shared_experts.w", ".feed_forward.shared_experts.0.w"},
    {".feed_forward.", ".mlp."},
    {".w1.", ".gate_proj."},
    {".w2.", ".down_proj."},
    {".w3.", ".up_proj."},
    {"tok_embeddings.", "model.embed_tokens."},
    {"output.", "lm_head."},
}};

struct CanonicalTensors {
  StoredTensors tensors;  // under Hugging Face's names, one tensor per expert, no wrapper prefixes
  NamingStyle style = NamingStyle::hugging_face;
  // Buffers that some versions saved next to the weights and that we compute instead: masks, RoPE tables.
  std::vector<std::string> skipped;
  // The numbers of tensors of the other parts of MiniMind-V and MiniMind-O, such as vision_proj, which are not kept.
  std::map<std::string, std::size_t> other_modalities;
};

// Converts the tensors of a checkpoint to canonical names:
//   - `module.` (DDP) and `_orig_mod.` (torch.compile) prefixes are removed;
//   - v1 names become Hugging Face names; a w1/w2 FFN without w3 becomes up_proj/down_proj;
//   - fused experts (mlp.experts.gate_up_proj [E, 2F, d], down_proj [E, d, F]) are split into one matrix each;
//   - saved buffers are moved to `skipped`;
//   - of MiniMind-V and MiniMind-O, the language model is kept, which is MiniMind-3.
// Throws Error, naming the family, for other relatives of MiniMind, and for two tensors with equal
// canonical names. Keeps unknown names, which check_tensors rejects.
CanonicalTensors to_canonical_names(StoredTensors stored, const std::string& path);

// Returns `name` without wrapper prefixes and in Hugging Face's style; for LoRA files, whose names extend module names.
std::string canonical_name(std::string_view name);

// Moves every <module>.lora.A.weight and <module>.lora.B.weight out of `stored`. The checkpoints of train_lora.py store
// them next to the weights that they belong to.
StoredTensors take_lora(StoredTensors& stored);

// Returns "model.layers.N." + rest.
std::string layer_tensor(std::size_t layer, std::string_view rest);

// Returns true if any FFN of the model has this part, such as ".gate_proj.weight".
bool some_network_has(const StoredTensors& tensors, std::string_view part);

// Returns true if a layer is an MoE layer: it has a router or experts.
bool is_mixture(const StoredTensors& tensors, std::size_t layer);

}  // namespace minimind
