#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weights/checkpoint/checkpoint.h"
#include "weights/gguf/reader.h"
#include "weights/tensor/output_tensor.h"

namespace minimind {

// A checkpoint as a GGUF file. Its tensors refer to the checkpoint's.
struct GgufExport {
  std::string architecture;
  // Why no architecture of llama.cpp computes this model exactly, in words; empty if one does.
  std::string only_ours_because;
  GgufMetadata metadata;  // all except the tokenizer's
  std::vector<OutputTensor> tensors;
  std::vector<std::string> exceptions;  // tensors that could not be encoded as requested
};

// Which architecture, as decided from llama.cpp's graphs (src/models/ in version 0.3.36 of llama-cpp-python):
//
//   llama       RMSNorm, RoPE of adjacent pairs, SwiGLU with or without biases: v1 and v2-early as they are; v2 and
//               Llama with permuted rows of q_proj and k_proj, the same model. With experts it divides the chosen
//               weights by their sum, always, and has no shared experts: right for MoE layers of v2 without shared
//               experts and top-2 up.
//   qwen3       the same with q_norm and k_norm per head and RoPE of halves: v3.
//   qwen3moe    with experts, whose weights are always divided by their sum: v3's MoE layers with norm_topk_prob.
//   bailingmoe  llama with routed and shared experts: softmax over all, top-k, division by the sum if
//               expert_weights_norm says so, shared experts added unweighted as one wider FFN: v1's and v2's
//               MoE layers. It requires an output matrix of its own, so a tied embedding is in the file twice.
//   minimind    ours, for the rest: FFNs that are not SwiGLU, biases next to q_norm or experts, dense layers among
//               MoE layers, routers that do not divide next to q_norm or without shared experts, YaRN with other betas
//               than 32 and 1 or whose ramp MiniMind clamps (config.h).
//
// Norms, routers and biases are f32. `name` becomes general.name.
GgufExport export_gguf(const Checkpoint& checkpoint, const WantedTypes& types, const std::string& name,
                       std::size_t threads);

}  // namespace minimind
