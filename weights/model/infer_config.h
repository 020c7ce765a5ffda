#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weights/model/config.h"
#include "weights/model/config_json.h"
#include "weights/model/tensor_names.h"

namespace minimind {

struct InferredConfig {
  Config config;
  ConfigSources sources;
};

// Finds every hyper-parameter of a checkpoint and where it came from: names and shapes of tensors, the config that
// comes with it, or what MiniMind's code of its generation uses. Precedence: tensors, overrides, config, generation.
// Throws Error if two of them disagree (showing both), or if a value can neither be seen nor assumed.
InferredConfig infer_config(const CanonicalTensors& canonical, const std::optional<StatedConfig>& stated,
                            const ConfigOverrides& overrides, const std::string& path);

}  // namespace minimind
