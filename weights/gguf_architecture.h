#pragma once

#include <string>
#include <string_view>

#include "weights/config.h"
#include "weights/tensor_file.h"

namespace minimind {

struct GgufArchitecture {
  std::string_view name;          // one of those in gguf_names.h
  std::string only_ours_because;  // in words, when it is our own
};

// The architecture of llama.cpp that computes exactly this model, or ours; see gguf_export.h.
GgufArchitecture gguf_architecture(const Config& config, const StoredTensors& tensors);

}  // namespace minimind
