#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "weights/checkpoint/checkpoint.h"
#include "weights/tensor/output_tensor.h"

namespace minimind {

// A checkpoint as the state dict of a PyTorch module. Its tensors refer to the checkpoint's.
struct StateDictExport {
  std::vector<OutputTensor> tensors;
  std::vector<std::pair<std::string, std::string>> tied;  // another name -> the name of the tensor it shares
  std::vector<std::string> exceptions;                    // tensors that could not be encoded as requested
};

// In both, the requested types are float types; stored block types become f32, which holds them exactly. Norms, routers
// and biases keep the type they have, or had before a GGUF widened them.

// Under the names that MiniMind's own code of that generation uses, the tied output matrix included: what its
// load_state_dict requires.
StateDictExport export_minimind(const Checkpoint& checkpoint, const WantedTypes& types, std::size_t threads);

// Under the names of transformers' Llama, Qwen3 and Qwen3-MoE, experts one by one and without a tied output matrix. The
// rows of q_proj and k_proj of v1 and v2-early are reordered to the RoPE layout of halves, which is the same model.
StateDictExport export_hugging_face(const Checkpoint& checkpoint, const WantedTypes& types, std::size_t threads);

}  // namespace minimind
