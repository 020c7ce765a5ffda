#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "weights/checkpoint/checkpoint.h"
#include "weights/gguf/reader.h"
#include "weights/tensor/output_tensor.h"

namespace minimind {

// A checkpoint as a GGUF file. Its tensors refer to the checkpoint's tensors.
struct GgufExport {
  std::string architecture;
  // Why no architecture of llama.cpp computes this model exactly; std::nullopt if one does.
  std::optional<Fact> only_ours_because;
  GgufMetadata metadata;  // all except the tokenizer's
  std::vector<OutputTensor> tensors;
  std::vector<Fact> exceptions;  // tensors that cannot have the requested type
};

// Chooses the architecture by what llama.cpp's graphs compute (src/models/ in version 0.3.36 of llama-cpp-python):
//
//   llama       RMSNorm, RoPE of adjacent pairs, SwiGLU with or without biases: v1 and v2-early unchanged;
//               v2 and Llama with permuted rows of q_proj and k_proj, an equivalent model. With experts it always
//               divides the chosen weights by their sum and has no shared experts: right for MoE layers of v2
//               without shared experts and top-2 or more.
//   qwen3       llama with q_norm and k_norm per head and RoPE of halves: v3.
//   qwen3moe    qwen3 with experts, whose weights are always divided by their sum: v3's MoE layers with
//               norm_topk_prob.
//   bailingmoe  llama with routed and shared experts: softmax over all, top-k, division by the sum if
//               expert_weights_norm is set, shared experts added unweighted as one wider FFN: v1's and v2's
//               MoE layers. It requires a separate output matrix, so the file stores a tied embedding twice.
//   minimind    our own, for the rest: FFNs that are not SwiGLU, biases together with q_norm or experts, dense
//               layers among MoE layers, routers that do not divide together with q_norm or without shared
//               experts, YaRN with other betas than 32 and 1 or whose ramp MiniMind clamps (config.h).
//
// Norms, routers and biases are f32. `name` becomes general.name.
GgufExport export_gguf(const Checkpoint& checkpoint, const WantedTypes& types, const std::string& name,
                       std::size_t threads);

}  // namespace minimind
