#include "weights/checkpoint/checkpoint.h"

#include <fmt/core.h>

#include <filesystem>
#include <set>
#include <utility>

#include "weights/base/error.h"
#include "weights/base/quote.h"
#include "weights/gguf/gguf_model.h"
#include "weights/gguf/reader.h"
#include "weights/huggingface/folder.h"
#include "weights/huggingface/safetensors.h"
#include "weights/io/mistaken_file.h"
#include "weights/io/text_file.h"
#include "weights/model/check_tensors.h"
#include "weights/model/python_config.h"
#include "weights/model/tensor_names.h"
#include "weights/torch/pth.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_python_file = 256 << 10;  // MiniMind's own have less than a tenth

// The contents of a file or folder, before they are checked against each other.
struct Source {
  std::string format;
  CanonicalTensors canonical;
  StoredTensors lora;                  // unmerged, under the file's names
  std::optional<StatedConfig> stated;  // said in the file itself
  std::optional<DType> vector_type;
  GgufMetadata metadata;
};

Source from_gguf(std::shared_ptr<const InputFile> file) {
  GgufModel model = read_gguf_model(std::move(file));
  Source source;
  source.format = std::move(model.format);
  source.canonical.tensors = std::move(model.tensors);
  source.stated = std::move(model.stated);
  source.vector_type = model.vector_type;
  source.metadata = std::move(model.metadata);
  return source;
}

Source from_state_dict(StoredTensors stored, std::string format, const std::string& path) {
  Source source;
  source.format = std::move(format);
  source.lora = take_lora(stored);
  if (stored.empty() && !source.lora.empty()) {
    throw Error(fmt::format(
        "{}: is a LoRA without a model; load the model it was trained on with this file as its LoRA (--lora {})", path,
        path));
  }
  source.canonical = to_canonical_names(std::move(stored), path);
  return source;
}

Source read_source(const std::string& path) {
  check_path(path);
  if (is_folder(path)) {
    HfFolder folder = read_hf_folder(path);
    return from_state_dict(std::move(folder.tensors), std::move(folder.format), path);
  }
  auto file = open_input(path);
  if (looks_like_gguf(file->start())) return from_gguf(std::move(file));
  if (looks_like_pth(file->start())) return from_state_dict(read_pth(std::move(file)), "torch.save", path);
  if (looks_like_safetensors(file->start())) {
    return from_state_dict(read_safetensors(std::move(file)), "safetensors", path);
  }
  throw Error(fmt::format("{}: is neither a torch.save file (.pth, .pt, .bin) nor safetensors nor GGUF{}", path,
                          shown_text(file->start())));
}

// The files of a Hugging Face export belong to the config next to them; next to a .pth, a config.json of something else
// may be.
std::optional<StatedConfig> stated_config(const std::string& path, const OpenOptions& options) {
  if (options.config_path) {
    StatedConfig stated = parse_config_json(read_text_or_pipe(*options.config_path), *options.config_path);
    if (stated.settings == 0)
      throw Error(fmt::format("{}: states no hyper-parameter of a model", *options.config_path));
    return stated;
  }
  if (is_folder(path)) return read_folder_config(path);
  const fs::path file(path);
  const bool exported = file.extension() == ".safetensors" || file.extension() == ".bin";
  auto stated = read_folder_config(file.parent_path().empty() ? "." : file.parent_path().string());
  return stated && (exported || stated->settings > 0) ? std::move(stated) : std::nullopt;
}

// Keys of the config that do not change what a model of this family computes.
std::vector<std::string> unused_settings(const std::optional<StatedConfig>& stated, Family family) {
  if (!stated) return {};
  std::vector<std::string> unused = stated->unused;
  if (stated->max_seq_len && !has_lm_config(family)) unused.push_back("max_seq_len");
  return unused;
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
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

// The folder above `folder` by name. If `folder` is a link, `folder`/.. is another folder.
fs::path named_parent(const fs::path& folder) {
  std::error_code failed;
  fs::path path = fs::absolute(folder, failed).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.parent_path();
}

// The folders of a checkpoint, and for each the folders model/ of MiniMind's trees that it may be in, out/ or the
// tree's own folder; in search order. If the checkpoint is a link, its target's places follow.
struct Surroundings {
  fs::path folder;
  std::vector<fs::path> model_folders;
};

std::vector<Surroundings> surroundings(const std::string& checkpoint_path) {
  const fs::path path(checkpoint_path);
  std::error_code failed;
  const fs::path target = fs::canonical(path, failed);
  std::vector<Surroundings> places;
  for (const fs::path& checkpoint : {path, target}) {
    if (checkpoint.empty()) continue;  // the file does not exist
    const fs::path folder = is_folder(checkpoint_path) ? checkpoint : checkpoint.parent_path();
    places.push_back({folder, {folder / ".." / "model", named_parent(folder) / "model", folder / "model"}});
  }
  return places;
}

// The path without x/.., unless x is a link, so that x/.. is another folder.
std::string shorter(const fs::path& path) {
  std::error_code failed;
  const fs::path normal = path.lexically_normal();
  return fs::equivalent(normal, path, failed) ? normal.string() : path.string();
}

PythonFile read_python(const fs::path& path) {
  const std::string name = shorter(path);
  return {name, read_text_file(name, largest_python_file)};
}

// The trainer, in the tree of this folder model/, that wrote the checkpoint.
std::optional<PythonFile> find_trainer(const fs::path& model_folder, const std::string& checkpoint_path) {
  for (const std::string& trainer : trainers_of(fs::path(checkpoint_path).filename().string())) {
    if (const fs::path path = model_folder / ".." / trainer; is_there(path)) return read_python(path);
  }
  return std::nullopt;
}

// The code of the tree that the checkpoint is in, if it is of the checkpoint's generation.
std::optional<PythonConfig> find_python_config(const std::string& checkpoint_path, const CanonicalTensors& canonical) {
  std::set<fs::path> known;  // most places are the same folder under another name
  for (const Surroundings& place : surroundings(checkpoint_path)) {
    for (const fs::path& folder : place.model_folders) {
      std::error_code failed;
      if (!known.insert(fs::weakly_canonical(folder, failed)).second) continue;
      for (const auto& [code, equations] : {std::pair{"model_minimind.py", ""}, {"LMConfig.py", "model.py"}}) {
        if (!is_there(folder / code)) continue;
        PythonTree tree{read_python(folder / code), std::nullopt, find_trainer(folder, checkpoint_path)};
        if (*equations != 0 && is_there(folder / equations)) tree.equations = read_python(folder / equations);
        if (auto config = read_python_config(tree, canonical)) return config;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

Checkpoint open_checkpoint(const std::string& path, const OpenOptions& options) {
  Source source = read_source(path);
  if (source.stated && options.config_path) {
    throw UsageError(fmt::format("{}: states every hyper-parameter itself; omit the config", path), Setting::config);
  }
  const auto beside = source.stated ? std::nullopt : stated_config(path, options);
  auto stated = beside ? beside : source.stated;
  // A GGUF and a folder state everything themselves.
  const bool alone =
      !source.stated && !is_folder(path) && (!stated || stated->model_type.value_or("minimind") == "minimind");
  auto python = alone ? find_python_config(path, source.canonical) : std::nullopt;
  if (python) {
    if (!stated) {
      stated.emplace();
      stated->source = python->stated.source;
    }
    add_missing(*stated, python->stated);
  }
  InferredConfig inferred = infer_config(source.canonical, stated, options.overrides, path);
  std::vector<std::string> unused = unused_settings(stated, inferred.config.family);
  Checkpoint checkpoint{.path = path,
                        .format = std::move(source.format),
                        .config = std::move(inferred.config),
                        .sources = std::move(inferred.sources),
                        .tensors = std::move(source.canonical.tensors),
                        .vector_type = source.vector_type,
                        .metadata = std::move(source.metadata),
                        .skipped = std::move(source.canonical.skipped),
                        .other_modalities = std::move(source.canonical.other_modalities),
                        .unused_settings = std::move(unused),
                        .code_not_read = python ? std::move(python->not_read) : std::vector<std::string>(),
                        .code_edited = python ? std::move(python->edited) : std::vector<std::string>(),
                        .lora_changed = {},
                        .own_lora = {},
                        .loras = {}};
  if (checkpoint.config.tie_word_embeddings) checkpoint.tensors.erase("lm_head.weight");
  check_tensors(checkpoint.tensors, checkpoint.config, path);
  add_loras(checkpoint, source.lora, options.loras);
  return checkpoint;
}

Checkpoint checkpoint_of(StoredTensors stored, const Config& config, const std::string& source) {
  Source weights = from_state_dict(std::move(stored), "memory", source);
  Checkpoint checkpoint;
  checkpoint.path = source;
  checkpoint.format = std::move(weights.format);
  checkpoint.config = config;
  checkpoint.tensors = std::move(weights.canonical.tensors);
  checkpoint.skipped = std::move(weights.canonical.skipped);
  checkpoint.other_modalities = std::move(weights.canonical.other_modalities);
  if (config.tie_word_embeddings) checkpoint.tensors.erase("lm_head.weight");
  check_tensors(checkpoint.tensors, config, source);
  add_loras(checkpoint, weights.lora, {});
  return checkpoint;
}

bool is_gguf(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored) || fs::file_size(path, ignored) == 0) return false;
  return looks_like_gguf(InputFile::open(path)->start());
}

std::optional<std::string> find_tokenizer(const std::string& checkpoint_path) {
  if (is_gguf(checkpoint_path) && holds_tokenizer(read_gguf(open_input(checkpoint_path)).metadata)) {
    return checkpoint_path;
  }
  for (const Surroundings& place : surroundings(checkpoint_path)) {
    std::vector<fs::path> folders{place.folder};
    for (const fs::path& model : place.model_folders) {
      folders.push_back(model);
      folders.push_back(model / "minimind_tokenizer");
    }
    for (const fs::path& folder : folders) {
      std::error_code failed;
      const fs::path candidate = folder / "tokenizer.json";
      if (fs::is_regular_file(candidate, failed)) return shorter(candidate);
    }
  }
  return std::nullopt;
}

}  // namespace minimind
