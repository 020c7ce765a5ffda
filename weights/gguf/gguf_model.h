#pragma once

#include <memory>
#include <optional>
#include <string>

#include "weights/gguf/metadata.h"
#include "weights/io/input_file.h"
#include "weights/model/config_json.h"
#include "weights/tensor/dtype.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// A GGUF file as a checkpoint.
struct GgufModel {
  StoredTensors tensors;  // under canonical names; one tensor per expert; q_proj and k_proj in the family's RoPE layout
  StatedConfig stated;    // every hyper-parameter that the metadata states
  std::optional<DType> vector_type;  // of norms and routers before they were widened to f32
  std::string format;                // "GGUF v3, qwen3"
  GgufMetadata metadata;
};

// Reads GGUF files of `convert`, and the `llama`, `qwen3` and `qwen3moe` files of llama.cpp's converter and quantiser.
// Throws Error as read_gguf does, and for an architecture that we do not compute. Also throws Error, naming the key,
// for unsupported hyper-parameters that would change the computation.
GgufModel read_gguf_model(std::shared_ptr<const InputFile> file);

}  // namespace minimind
