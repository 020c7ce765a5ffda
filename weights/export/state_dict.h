#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "weights/checkpoint/checkpoint.h"
#include "weights/tensor/output_tensor.h"

namespace minimind {

// A checkpoint as the state dict of a PyTorch module. Its tensors refer to the checkpoint's tensors.
struct StateDictExport {
  std::vector<OutputTensor> tensors;
  std::vector<std::pair<std::string, std::string>> tied;  // second name -> the name of the shared tensor
  std::vector<Fact> exceptions;                           // tensors that cannot have the requested type
};

// For both functions, the requested types must be float types. Stored block types become f32, which represents them
// exactly. Norms, routers and biases keep their type, or the type that they had before a GGUF widened them.

// Uses the names of MiniMind's own code of that generation, as its load_state_dict requires; includes the tied output
// matrix.
StateDictExport export_minimind(const Checkpoint& checkpoint, const WantedTypes& types, std::size_t threads);

// Uses the names of transformers' Llama, Qwen3 and Qwen3-MoE: one tensor per expert, no tied output matrix. Reorders
// the rows of q_proj and k_proj of v1 and v2-early to the halves layout of RoPE, which is an equivalent model.
StateDictExport export_hugging_face(const Checkpoint& checkpoint, const WantedTypes& types, std::size_t threads);

}  // namespace minimind
