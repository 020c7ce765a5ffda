#pragma once

#include <optional>
#include <string>

#include "weights/model/config_json.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// A Hugging Face folder: config.json with model.safetensors or pytorch_model.bin, whole or in shards listed by an
// index. If both kinds exist, the safetensors are read, as in transformers.
struct HfFolder {
  StoredTensors tensors;
  std::string format;  // "safetensors" or "torch.save", with the number of shards
};

// Returns true if the folder has weights under one of these names.
bool is_hf_folder(const std::string& folder);

// Throws Error if the folder has no weights (naming its .pth files), if a shard is missing or is not a plain file name,
// and if shards and index disagree about a tensor.
HfFolder read_hf_folder(const std::string& folder);

// Returns config.json of `folder`, with the eos_token_id of generation_config.json added; std::nullopt if there is
// none. Throws Error as parse_config_json does.
std::optional<StatedConfig> read_folder_config(const std::string& folder);

}  // namespace minimind
