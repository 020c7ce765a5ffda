#pragma once

#include <optional>
#include <string>

#include "weights/model/config.h"
#include "weights/model/config_json.h"
#include "weights/model/tensor_names.h"

namespace minimind {

struct InferredConfig {
  Config config;
  ConfigSources sources;
};

// Finds every hyper-parameter of a checkpoint and its source. Precedence: names and shapes of tensors, overrides, the
// config, then the defaults of MiniMind's code of its generation. Throws Error if two sources disagree, showing both
// values, or if a value is neither known nor assumed.
InferredConfig infer_config(const CanonicalTensors& canonical, const std::optional<StatedConfig>& stated,
                            const ConfigOverrides& overrides, const std::string& path);

}  // namespace minimind
