#pragma once

#include <string>
#include <string_view>

#include "weights/model/config.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

struct GgufArchitecture {
  std::string_view name;          // one of those in weights/gguf/names.h
  std::string only_ours_because;  // in words, when it is our own
};

// The architecture of llama.cpp that computes exactly this model, or ours; see weights/export/gguf.h.
GgufArchitecture gguf_architecture(const Config& config, const StoredTensors& tensors);

}  // namespace minimind
