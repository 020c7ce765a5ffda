#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/model/config.h"
#include "weights/model/config_json.h"
#include "weights/model/tensor_names.h"

namespace minimind {

// A Python file of MiniMind's tree.
struct PythonFile {
  std::string path;  // for messages
  std::string text;
};

// What MiniMind's own code says about a model, and no tensor shows.
struct PythonConfig {
  StatedConfig stated;                // the defaults of the configuration class, each with its line as its place
  std::vector<std::string> not_read;  // settings whose values are not literals, such as "rope_theta (model.py:24)"
  // Classes and functions of the equations that are those of no known version, such as "Attention (model.py:93)".
  std::vector<std::string> edited;
};

// Reads the defaults of MiniMindConfig or LMConfig as text, without executing anything: literals of the parameters of
// __init__, class attributes, `self.x = kwargs.get("x", 1e6)`, and arithmetic of these. Trainers pass the hidden size,
// the number of layers and use_moe as arguments: their defaults do not count. `equations` is the file with the classes
// of the model if it is another one. Returns std::nullopt if `config` has no such class, or if the code is of another
// generation than the tensors. Throws Error for a value that config.json may not have either, and for a model that is
// not causal.
std::optional<PythonConfig> read_python_config(const PythonFile& config, const PythonFile* equations,
                                               const CanonicalTensors& canonical);

}  // namespace minimind
