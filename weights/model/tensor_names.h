#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/model/config.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// Tensor names come in two styles. MiniMind v1's are tok_embeddings, layers.N.attention.wq, feed_forward.w1, ... All
// later generations use Hugging Face's: model.embed_tokens, model.layers.N.self_attn.q_proj, mlp.gate_proj, ...
enum class NamingStyle { v1, hugging_face };

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

// Returns the name that MiniMind's own code of that generation uses for the tensor `canonical`: the inverse of
// canonical_name. v1 and v2-early have their own names, in which the two matrices of an FFN that is not `gated` are w1
// and w2. All others have Hugging Face's names.
std::string minimind_name(Family family, std::string_view canonical, bool gated = true);

}  // namespace minimind
