#pragma once

#include <optional>
#include <string>

#include "weights/model/config.h"
#include "weights/model/config_json.h"

namespace minimind {

// What the tensors tell about attention heads.
struct HeadEvidence {
  Family family = Family::v3;
  std::size_t q_rows = 0;                    // heads x head_dim
  std::size_t k_rows = 0;                    // kv heads x head_dim
  std::optional<std::size_t> q_norm_length;  // head_dim, where the family has q_norm
};

struct Heads {
  std::size_t num_attention_heads = 0;
  std::size_t num_key_value_heads = 0;
  std::size_t head_dim = 0;
  ConfigSources sources;
};

// The three numbers, from q_norm where there is one, else from an option, the config, or what MiniMind's code of that
// generation sets. Throws Error where these disagree or leave a remainder, and where nothing tells.
Heads infer_heads(const HeadEvidence& evidence, const StatedConfig& stated, const ConfigOverrides& overrides,
                  const std::string& path);

// What MiniMind's code of each generation sets, and transformers' of its classes, where no config says otherwise.
struct Generation {
  std::size_t heads, kv_heads, max_position_embeddings;
  double rms_norm_eps, rope_theta;
};
Generation generation(Family family);

}  // namespace minimind
