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

// Finds every hyper-parameter of a checkpoint: from the shapes and names of its tensors where these tell, else from
// the config that comes with it, else from what MiniMind's code of that generation fixes, and notes which it was.
// Overrides win over the config, and over the generation's habits; nothing wins over the tensors.
// Throws Error where two of them disagree (showing both), and where a value can neither be seen nor assumed.
InferredConfig infer_config(const CanonicalTensors& canonical, const std::optional<StatedConfig>& stated,
                            const ConfigOverrides& overrides, const std::string& path);

}  // namespace minimind
