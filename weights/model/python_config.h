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

// The files of one of MiniMind's trees.
struct PythonTree {
  PythonFile config;
  std::optional<PythonFile> equations;  // the classes of the model, if they are in another file
  std::optional<PythonFile> trainer;    // which made the checkpoint
};

// Reads the defaults of MiniMindConfig or LMConfig as text, without executing anything: literals of the parameters of
// __init__, class attributes, `self.x = kwargs.get("x", 1e6)`, and arithmetic of these. Instead of a default counts
// what the trainer gives in its first call of the class, which is of the model that it trains. Trainers pass the hidden
// size, the number of layers and use_moe from their command lines: these do not count. Returns std::nullopt if the
// configuration has no such class, or if the code is of another generation than the tensors. Throws Error for a value
// that config.json may not have either, and for a model that is not causal.
std::optional<PythonConfig> read_python_config(const PythonTree& tree, const CanonicalTensors& canonical);

// Returns the paths, relative to the folder of a tree, at which the trainer may be that wrote a checkpoint of this
// name, such as full_sft_768.pth; the most likely first.
std::vector<std::string> trainers_of(std::string_view checkpoint_name);

// Adds to `stated` what only `other` states, with its places.
void add_missing(StatedConfig& stated, const StatedConfig& other);

}  // namespace minimind
