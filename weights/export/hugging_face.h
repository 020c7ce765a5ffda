#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "weights/base/fact.h"
#include "weights/model/config.h"
#include "weights/tensor/dtype.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// The identity of a model in a config.json.
struct HfModelType {
  std::string model_type;                    // "llama", "qwen3", "qwen3_moe" or "minimind"
  std::optional<Fact> why_not_transformers;  // the reason for "minimind"
};

// Returns the class of transformers that computes exactly this model, or MiniMind's own if there is none. The rows of
// q_proj and k_proj then must be in the halves order of RopeLayout. `tensors` are under their canonical names.
HfModelType hf_model_type(const Config& config, const StoredTensors& tensors);

// Returns the text of config.json for such a class, its keys sorted, as transformers writes them. `dtype` is the type
// of the stored weights: f32, f16 or bf16. Throws Error for a RoPE scaling that neither transformers nor MiniMind can
// express.
std::string hf_config_json(const Config& config, const StoredTensors& tensors, std::string_view model_type,
                           DType dtype);

}  // namespace minimind
