#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weights/checkpoint/lora.h"
#include "weights/gguf/metadata.h"
#include "weights/model/config.h"
#include "weights/model/infer_config.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

struct OpenOptions {
  ConfigOverrides overrides;
  std::optional<std::string> config_path;  // used instead of a config.json next to the weights
  std::vector<LoraFile> loras;             // added in this order
};

// A checkpoint of any format: a complete config and exactly the tensors that the model reads, checked.
struct Checkpoint {
  std::string path;
  std::string format;  // "torch.save", "safetensors, 2 shards", ...
  Config config;
  ConfigSources sources;
  StoredTensors tensors;             // under Hugging Face's names; no lm_head.weight if embeddings are tied
  std::optional<DType> vector_type;  // of norms and routers before a GGUF widened them, if not f32
  GgufMetadata metadata;             // of a GGUF; empty for other formats
  std::vector<std::string> skipped;  // saved buffers that are computed here instead
  std::map<std::string, std::size_t> other_modalities;  // numbers of tensors of MiniMind-V and -O that are not read
  std::vector<std::string> unused_settings;             // keys of the config that do not change what is computed
  // Of MiniMind's code: settings that are not literals, and equations that no version of it has, each with its place,
  // such as "rope_theta (FILE:LINE)".
  std::vector<std::string> code_not_read, code_edited;
  std::vector<std::string> lora_changed;  // tensors that a LoRA changed; they are kept as f32
  std::optional<LoraMerge> own_lora;      // of the checkpoint's own unmerged LoRA
  std::vector<LoraMerge> loras;           // one for each of OpenOptions::loras, in order
};

// Opens a checkpoint; other rooms read checkpoints only through this function. Detects .pth, .pt, .bin, .safetensors
// and .gguf files by their content; a Hugging Face folder also works. Throws Error, naming the path, unless the
// checkpoint is a complete MiniMind text model.
Checkpoint open_checkpoint(const std::string& path, const OpenOptions& options);

// Returns a checkpoint of weights in memory, under the names of any generation, with a config that is known already.
// `source` is their origin in messages. An unmerged LoRA among them is merged. Throws Error unless they are exactly the
// weights of such a model. The tensors' data must live until they are no longer read.
Checkpoint checkpoint_of(StoredTensors stored, const Config& config, const std::string& source);

// Returns true if the file exists and starts with GGUF's magic.
bool is_gguf(const std::string& path);

// Returns the path of a checkpoint's tokenizer, std::nullopt if there is none. A GGUF with a tokenizer is its own.
// Otherwise the tokenizer is a tokenizer.json next to the checkpoint, in model/ or in model/minimind_tokenizer/, there
// or one folder up, as in MiniMind's trees. If the checkpoint is a link, its target's places are searched too. Throws
// Error for a corrupt GGUF.
std::optional<std::string> find_tokenizer(const std::string& checkpoint_path);

}  // namespace minimind
