#pragma once

#include <string>
#include <string_view>

#include "weights/model/config.h"
#include "weights/tensor/dtype.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// What a model is called in a config.json.
struct HfModelType {
  std::string model_type;            // "llama", "qwen3", "qwen3_moe" or "minimind"
  std::string why_not_transformers;  // if it is "minimind": what no class of transformers computes; else empty
};

// The class of transformers that computes exactly what this model does, once the rows of q_proj and k_proj are in the
// halves order of RopeLayout; MiniMind's own if there is none. `tensors` are under their canonical names.
HfModelType hf_model_type(const Config& config, const StoredTensors& tensors);

// The text of config.json for one of these types and for weights that are stored as `dtype`, which is f32, f16 or bf16.
// Throws Error for a RoPE scaling that neither transformers nor MiniMind can express.
std::string hf_config_json(const Config& config, const StoredTensors& tensors, std::string_view model_type,
                           DType dtype);

}  // namespace minimind
