#pragma once

#include <string>

#include "weights/gguf/metadata.h"
#include "weights/model/config_json.h"

namespace minimind {

// The hyper-parameters in the metadata of a GGUF file of one of the architectures in names.h, as a config.json
// states them; `source` names the file in messages. Throws Error, naming the key, for values of the wrong type or range
// and for settings that would change the computation in ways we do not do.
StatedConfig gguf_settings(const GgufMetadata& metadata, const std::string& source);

// YaRN as llama.cpp computes it multiplies sines and cosines by `attn_factor` (1 + 0.1 ln factor); transformers and
// MiniMind by the attention factor itself. The attn_factor that a GGUF states for one of theirs.
float gguf_attention_factor(double attention_factor, double yarn_factor);

}  // namespace minimind
