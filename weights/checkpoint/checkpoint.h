#pragma once

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

// A checkpoint, saved in any format: a complete config and exactly the tensors that the model reads, checked.
struct Checkpoint {
  std::string path;
  std::string format;  // "torch.save", "safetensors, 2 shards", ...
  Config config;
  ConfigSources sources;
  StoredTensors tensors;                     // under Hugging Face's names; no lm_head.weight when embeddings are tied
  std::optional<DType> vector_type;          // of norms and routers, in what a GGUF was made from, if not f32
  GgufMetadata metadata;                     // of a GGUF; empty for other formats
  std::vector<std::string> skipped;          // saved buffers that are computed here instead
  std::vector<std::string> unused_settings;  // keys of the config that do not change what is computed
  std::vector<std::string> lora_changed;     // tensors that a LoRA changed; they are kept as f32
  std::optional<LoraMerge> own_lora;         // that the checkpoint itself held, unmerged
  std::vector<LoraMerge> loras;              // of OpenOptions, in their order
};

// The only door: .pth, .pt, .bin, .safetensors and .gguf files by their content, or a Hugging Face folder.
// Throws Error, always naming the path, for anything that is not a complete MiniMind text model.
Checkpoint open_checkpoint(const std::string& path, const OpenOptions& options);

// Whether there is a file of that name that starts as a GGUF does.
bool is_gguf(const std::string& path);

// Where a checkpoint's tokenizer is: in itself, if it is a GGUF with one, else the tokenizer.json next to it or in
// model/ or model/minimind_tokenizer/, there or one folder up, as MiniMind's trees have it; also around the target of a
// link. Returns std::nullopt if there is none. Throws Error for a corrupt GGUF.
std::optional<std::string> find_tokenizer(const std::string& checkpoint_path);

}  // namespace minimind
