#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/io/input_file.h"
#include "weights/model/config.h"
#include "weights/model/config_json.h"
#include "weights/model/infer_config.h"
#include "weights/model/tensor_names.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

class GgufMetadata;

// The effect of one LoRA on a model.
struct LoraMerge {
  std::string path = {};
  std::vector<std::string> changed = {};  // names of the changed weights, which are kept as f32
  std::size_t smallest_rank = 0;
  std::size_t largest_rank = 0;
  std::vector<std::string> without_experts = {};  // modules of experts, omitted because the model is dense
  std::size_t base_tensors = 0;                   // number of unused tensors, if the LoRA's file also has a whole model
};

// A checkpoint of any format: a complete config and exactly the tensors that the model reads, checked.
struct Checkpoint {
  std::string path;
  std::string format;  // "torch.save", "safetensors, 2 shards", ...
  Config config;
  ConfigSources sources;
  StoredTensors tensors;                         // under Hugging Face's names; no lm_head.weight if embeddings are tied
  std::optional<DType> vector_type;              // of norms and routers before a GGUF widened them, if not f32
  std::shared_ptr<const GgufMetadata> metadata;  // of a GGUF; null for other formats
  std::vector<std::string> skipped;              // saved buffers that are computed here instead
  std::map<std::string, std::size_t> other_modalities;  // numbers of tensors of MiniMind-V and -O that are not read
  std::vector<std::string> unused_settings;             // keys of the config that do not change what is computed
  // Of MiniMind's code: settings that are not literals, and equations that no version of it has, each with its place,
  // such as "rope_theta (FILE:LINE)".
  std::vector<std::string> code_not_read, code_edited;
  std::vector<std::string> lora_changed;  // tensors that a LoRA changed; they are kept as f32
  std::optional<LoraMerge> own_lora;      // of the checkpoint's own unmerged LoRA
  std::vector<LoraMerge> loras;           // one for each of OpenOptions::loras, in order
};

// The contents of a file or folder, before they are checked against each other.
struct CheckpointContents {
  std::string format;
  CanonicalTensors canonical;
  StoredTensors lora;                  // unmerged, under the file's names
  std::optional<StatedConfig> stated;  // said in the file itself
  std::optional<DType> vector_type;
  std::shared_ptr<const GgufMetadata> metadata;
};

// A format of files. Every program passes a list of those that it reads.
struct CheckpointFormat {
  std::string_view name;  // for messages
  bool (*recognises)(std::span<const std::byte> start);
  CheckpointContents (*read)(std::shared_ptr<const InputFile> file);
};

// torch.save's files and safetensors, which MiniMind's own scripts write.
extern const std::span<const CheckpointFormat> minimind_formats;

// Reads a file in one of the formats, which its content tells, or a Hugging Face folder. Throws Error, naming the path,
// for any other.
CheckpointContents read_contents(const std::string& path, std::span<const CheckpointFormat> formats);

// Returns the contents of a state dict, under the names of any generation. Throws Error if it is a LoRA without a
// model.
CheckpointContents contents_of(StoredTensors stored, std::string format, const std::string& path);

// Returns the config.json next to a checkpoint's file, or in its folder; std::nullopt if there is none. The files of a
// Hugging Face export belong to the config next to them; next to a .pth, a config.json of something else may be, which
// does not count.
std::optional<StatedConfig> config_beside(const std::string& path);

// Returns the checkpoint of these contents, without the LoRA and without the sources of the config. Throws Error unless
// they are exactly the weights of a model with this config.
Checkpoint with_config(CheckpointContents contents, Config config, const std::string& path);

// The same with the config that the contents, `stated` and `overrides` imply. Throws Error unless these agree and the
// contents are a complete MiniMind text model.
Checkpoint make_checkpoint(CheckpointContents contents, const std::optional<StatedConfig>& stated,
                           const ConfigOverrides& overrides, const std::string& path);

// Returns the path of the tokenizer.json that belongs to a checkpoint, std::nullopt if there is none: next to the
// checkpoint, in model/ or in model/minimind_tokenizer/, there or one folder up, as in MiniMind's trees. If the
// checkpoint is a link, its target's places are searched too.
std::optional<std::string> find_tokenizer_json(const std::string& checkpoint_path);

// The folder of a checkpoint, and the folders model/ of MiniMind's trees that it may be in, out/ or the tree's own
// folder; in search order.
struct Surroundings {
  std::string folder;
  std::vector<std::string> model_folders;
};

// Returns those of a checkpoint. If it is a link, its target's follow.
std::vector<Surroundings> surroundings(const std::string& checkpoint_path);

// Returns the path of a file without x/.., unless x is a link, so that x/.. is another folder.
std::string shorter(const std::string& path);

}  // namespace minimind
