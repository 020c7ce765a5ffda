#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "weights/base/fact.h"
#include "weights/checkpoint/checkpoint.h"
#include "weights/checkpoint/lora.h"

namespace minimind {

struct OpenOptions {
  ConfigOverrides overrides;
  std::optional<std::string> config_path;  // used instead of a config.json next to the weights
  std::vector<LoraFile> loras;             // added in this order
  const Config* running = nullptr;         // of the model that gets the weights, for files that state no config
};

// Opens a checkpoint; other rooms read checkpoints only through this function. Detects .pth, .pt, .bin, .safetensors
// and .gguf files by their content; a Hugging Face folder also works. What neither the tensors nor a config state is
// taken from MiniMind's own code, if the checkpoint is in its tree. Throws Error, naming the path, unless the
// checkpoint is a complete MiniMind text model.
Checkpoint open_checkpoint(const std::string& path, const OpenOptions& options);

// Returns a checkpoint of weights in memory, under the names of any generation, with a config that is known already.
// `source` is their origin in messages. An unmerged LoRA among them is merged. Throws Error unless they are exactly the
// weights of such a model. The tensors' data must live until they are no longer read.
Checkpoint checkpoint_of(StoredTensors stored, const Config& config, const std::string& source);

// Returns the number of weights.
std::size_t parameter_count(const Checkpoint& checkpoint);

// Returns what a person should know of a checkpoint: the effect of LoRAs, and what of its file and of MiniMind's code
// next to it is not read.
std::vector<Fact> checkpoint_notes(const Checkpoint& checkpoint);

// Returns true if the file exists and starts with GGUF's magic.
bool is_gguf(const std::string& path);

// Returns the path of a checkpoint's tokenizer, std::nullopt if there is none. A GGUF with a tokenizer is its own;
// other checkpoints have that of find_tokenizer_json(). Throws Error for a corrupt GGUF.
std::optional<std::string> find_tokenizer(const std::string& checkpoint_path);

}  // namespace minimind
