#include "weights/checkpoint/open_checkpoint.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <utility>

#include "weights/base/error.h"
#include "weights/gguf/gguf_model.h"
#include "weights/gguf/reader.h"
#include "weights/io/input_file.h"
#include "weights/io/mistaken_path.h"
#include "weights/io/path.h"
#include "weights/io/text_file.h"
#include "weights/model/python_config.h"
#include "weights/tensor/shape.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_python_file = 256 << 10;  // MiniMind's own have less than a tenth

CheckpointContents from_gguf(std::shared_ptr<const InputFile> file) {
  GgufModel model = read_gguf_model(std::move(file));
  CheckpointContents contents;
  contents.format = std::move(model.format);
  contents.canonical.tensors = std::move(model.tensors);
  contents.stated = std::move(model.stated);
  contents.vector_type = model.vector_type;
  contents.metadata = std::make_shared<const GgufMetadata>(std::move(model.metadata));
  return contents;
}

constexpr CheckpointFormat gguf_format{"GGUF", looks_like_gguf, from_gguf};

CheckpointContents read_any(const std::string& path) {
  std::vector<CheckpointFormat> formats(minimind_formats.begin(), minimind_formats.end());
  formats.push_back(gguf_format);
  check_path(path);
  return read_contents(path, formats);
}

std::optional<StatedConfig> stated_config(const std::string& path, const OpenOptions& options) {
  if (!options.config_path) return config_beside(path);
  StatedConfig stated = parse_config_json(read_text_or_pipe(*options.config_path), *options.config_path);
  if (stated.settings == 0) throw Error(fmt::format("{}: states no hyper-parameter of a model", *options.config_path));
  return stated;
}

// Merges the checkpoint's own LoRA, then the requested ones.
void add_loras(Checkpoint& checkpoint, const StoredTensors& own, const std::vector<LoraFile>& given) {
  const auto changed = [&](const LoraMerge& merge) {
    checkpoint.lora_changed.insert(checkpoint.lora_changed.end(), merge.changed.begin(), merge.changed.end());
  };
  if (!own.empty()) {
    checkpoint.own_lora = merge_lora(checkpoint.tensors, own, {checkpoint.path, 1});
    changed(*checkpoint.own_lora);
  }
  for (const LoraFile& lora : given) {
    if (!own.empty() && is_same_file(lora.path, checkpoint.path)) {
      throw UsageError(
          fmt::format("{}: is the model itself, with its LoRA merged already; omit it as a LoRA", lora.path));
    }
    checkpoint.loras.push_back(add_lora(checkpoint.tensors, lora));
    changed(checkpoint.loras.back());
  }
}

// llama.cpp's names for a model without a tokenizer are "none" and "no_vocab".
bool holds_tokenizer(const GgufMetadata& metadata) {
  const GgufValue* const model = metadata.find("tokenizer.ggml.model");
  const auto* const name = model ? std::get_if<std::string>(&model->data) : nullptr;
  return model && !(name && (*name == "none" || *name == "no_vocab"));
}

PythonFile read_python(const std::string& path) {
  const std::string name = shorter(path);
  return {name, read_text_file(name, largest_python_file)};
}

// The trainer, in the tree of this folder model/, that wrote the checkpoint.
std::optional<PythonFile> find_trainer(const std::string& model_folder, const std::string& checkpoint_path) {
  for (const std::string& trainer : trainers_of(fs::path(checkpoint_path).filename().string())) {
    const std::string path = join_path(join_path(model_folder, ".."), trainer);
    if (is_there(path)) return read_python(path);
  }
  return std::nullopt;
}

// The code of the tree that the checkpoint is in, if it is of the checkpoint's generation.
std::optional<PythonConfig> find_python_config(const std::string& checkpoint_path, const CanonicalTensors& canonical) {
  std::set<fs::path> known;  // most places are the same folder under another name
  for (const Surroundings& place : surroundings(checkpoint_path)) {
    for (const std::string& folder : place.model_folders) {
      std::error_code failed;
      if (!known.insert(fs::weakly_canonical(folder, failed)).second) continue;
      for (const auto& [code, equations] : {std::pair{"model_minimind.py", ""}, {"LMConfig.py", "model.py"}}) {
        const std::string code_path = join_path(folder, code), equations_path = join_path(folder, equations);
        if (!is_there(code_path)) continue;
        PythonTree tree{read_python(code_path), std::nullopt, find_trainer(folder, checkpoint_path)};
        if (*equations != 0 && is_there(equations_path)) tree.equations = read_python(equations_path);
        if (auto config = read_python_config(tree, canonical)) return config;
      }
    }
  }
  return std::nullopt;
}

Fact tensor_count(std::size_t count) {
  return count == 1 ? Fact("{} tensor", count) : Fact("{} tensors", count);
}

Fact module_count(std::size_t count) {
  return count == 1 ? Fact("{} module", count) : Fact("{} modules", count);
}

Fact rank_of(const LoraMerge& lora) {
  if (lora.smallest_rank == lora.largest_rank) return Fact("rank {}", lora.largest_rank);
  return Fact("ranks {} to {}", lora.smallest_rank, lora.largest_rank);
}

Fact without_experts(const LoraMerge& lora) {
  return Fact("{}: its LoRA for {} of experts is not used (first: {}): the model is dense", lora.path,
              module_count(lora.without_experts.size()), lora.without_experts.front());
}

}  // namespace

Checkpoint open_checkpoint(const std::string& path, const OpenOptions& options) {
  CheckpointContents contents = read_any(path);
  if (contents.stated && options.config_path) {
    throw UsageError(fmt::format("{}: states every hyper-parameter itself; omit the config", path), Setting::config);
  }
  auto stated = contents.stated ? contents.stated : stated_config(path, options);
  // A GGUF and a folder state everything themselves.
  const bool alone =
      !contents.stated && !is_folder(path) && (!stated || stated->model_type.value_or("minimind") == "minimind");
  auto python = alone ? find_python_config(path, contents.canonical) : std::nullopt;
  if (python) {
    if (!stated) {
      stated.emplace();
      stated->source = python->stated.source;
    }
    add_missing(*stated, python->stated);
  }
  const StoredTensors own_lora = std::move(contents.lora);
  // Shapes show neither all numbers of heads nor rope_theta, so that a guess may differ from the running model.
  Checkpoint checkpoint = options.running && !stated
                              ? with_config(std::move(contents), *options.running, path)
                              : make_checkpoint(std::move(contents), stated, options.overrides, path);
  if (python) {
    checkpoint.code_not_read = std::move(python->not_read);
    checkpoint.code_edited = std::move(python->edited);
  }
  add_loras(checkpoint, own_lora, options.loras);
  return checkpoint;
}

Checkpoint checkpoint_of(StoredTensors stored, const Config& config, const std::string& source) {
  CheckpointContents contents = contents_of(std::move(stored), "memory", source);
  const StoredTensors lora = std::move(contents.lora);
  Checkpoint checkpoint = with_config(std::move(contents), config, source);
  add_loras(checkpoint, lora, {});
  return checkpoint;
}

std::size_t parameter_count(const Checkpoint& checkpoint) {
  std::size_t count = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) count += element_count(tensor.shape).value();
  return count;
}

std::vector<Fact> checkpoint_notes(const Checkpoint& checkpoint) {
  std::vector<Fact> notes;
  for (const auto& [part, count] : checkpoint.other_modalities) {
    notes.push_back(Fact("text only: the {} of {} are not read", tensor_count(count), part));
  }
  for (const std::string& setting : checkpoint.code_not_read) {
    notes.push_back(Fact("{} in MiniMind's code is not a literal and is not read", setting));
  }
  if (!checkpoint.code_edited.empty()) {
    notes.push_back(Fact("equations edited in MiniMind's code: {}; those of its own versions are computed",
                         fmt::format("{}", fmt::join(checkpoint.code_edited, ", "))));
  }
  if (const auto& own = checkpoint.own_lora) {
    if (!own->changed.empty()) {
      notes.push_back(Fact("the checkpoint's own LoRA of {} merged into {} (first: {}), kept as f32", rank_of(*own),
                           tensor_count(own->changed.size()), own->changed.front()));
    }
    if (!own->without_experts.empty()) notes.push_back(without_experts(*own));
  }
  for (const LoraMerge& lora : checkpoint.loras) {
    if (!lora.changed.empty()) {
      notes.push_back(Fact("LoRA of {} merged into {} (first: {}), kept as f32", rank_of(lora),
                           tensor_count(lora.changed.size()), lora.changed.front()));
    }
    if (lora.base_tensors > 0) {
      notes.push_back(Fact("{}: only its LoRA is used, not the {} of the model it also holds", lora.path,
                           tensor_count(lora.base_tensors)));
    }
    if (!lora.without_experts.empty()) notes.push_back(without_experts(lora));
  }
  return notes;
}

bool is_gguf(const std::string& path) {
  std::error_code failed;
  if (!is_regular_file(path) || fs::file_size(path, failed) == 0) return false;
  return looks_like_gguf(InputFile::open(path)->start());
}

std::optional<std::string> find_tokenizer(const std::string& checkpoint_path) {
  if (is_gguf(checkpoint_path) && holds_tokenizer(read_gguf(open_input(checkpoint_path)).metadata)) {
    return checkpoint_path;
  }
  return find_tokenizer_json(checkpoint_path);
}

}  // namespace minimind
