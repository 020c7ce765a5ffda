#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/model/config.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// Tensor names come in two styles: MiniMind v1's (tok_embeddings, layers.N.attention.wq, feed_forward.w1, ...) and
// Hugging Face's (model.embed_tokens, model.layers.N.self_attn.q_proj, mlp.gate_proj, ...), which all later ones use.
enum class NamingStyle { v1, hugging_face };

struct CanonicalTensors {
  StoredTensors tensors;  // under Hugging Face's names, experts one by one, no wrapper prefixes
  NamingStyle style = NamingStyle::hugging_face;
  // Buffers that some versions saved next to the weights and that are computed here instead: masks, RoPE tables.
  std::vector<std::string> skipped;
};

// Brings the tensors of a checkpoint under one naming:
//   - `module.` (DDP) and `_orig_mod.` (torch.compile) prefixes are removed;
//   - v1 names become Hugging Face names; a w1/w2 network without w3 becomes up_proj/down_proj;
//   - fused experts (mlp.experts.gate_up_proj [E, 2F, d], down_proj [E, d, F]) are split into one matrix each;
//   - saved buffers are set aside.
// Throws Error, naming the family, for multimodal and other relatives of MiniMind, and for two tensors that
// would get the same name. Names it does not know are passed on: check_tensors decides about them.
CanonicalTensors to_canonical_names(StoredTensors stored, const std::string& path);

// `name` without wrapper prefixes and in Hugging Face's style; for LoRA files, whose names extend module names.
std::string canonical_name(std::string_view name);

// "model.layers.N." + rest.
std::string layer_tensor(std::size_t layer, std::string_view rest);

// Whether any FFN of the model has this part, such as ".gate_proj.weight".
bool some_network_has(const StoredTensors& tensors, std::string_view part);

// Whether a layer is an MoE layer: it has a router or experts.
bool is_mixture(const StoredTensors& tensors, std::size_t layer);

// The name under which MiniMind's own code of that generation keeps the tensor that is called `canonical` here: the
// inverse of canonical_name. v1 and v2-early have names of their own, in which the two matrices of an FFN that is
// not `gated` are w1 and w2; all others have Hugging Face's.
std::string minimind_name(Family family, std::string_view canonical, bool gated = true);

}  // namespace minimind
