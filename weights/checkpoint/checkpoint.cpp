#include "weights/checkpoint/checkpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "weights/base/error.h"
#include "weights/huggingface/folder.h"
#include "weights/huggingface/safetensors.h"
#include "weights/io/path.h"
#include "weights/model/check_tensors.h"
#include "weights/torch/pth.h"

namespace minimind {
namespace {

CheckpointContents from_pth(std::shared_ptr<const InputFile> file) {
  const std::string path = file->path();
  return contents_of(read_pth(std::move(file)), "torch.save", path);
}

CheckpointContents from_safetensors(std::shared_ptr<const InputFile> file) {
  const std::string path = file->path();
  return contents_of(read_safetensors(std::move(file)), "safetensors", path);
}

constexpr CheckpointFormat formats_of_minimind[] = {
    {"a torch.save file (.pth, .pt, .bin)", looks_like_pth, from_pth},
    {"safetensors", looks_like_safetensors, from_safetensors},
};

// "neither A nor B nor C"
std::string none_of(std::span<const CheckpointFormat> formats) {
  std::string text = "neither";
  for (const CheckpointFormat& format : formats) {
    text += fmt::format("{} {}", &format == formats.data() ? "" : " nor", format.name);
  }
  return text;
}

// Keys of the config that do not change what a model of this family computes.
std::vector<std::string> unused_settings(const std::optional<StatedConfig>& stated, Family family) {
  if (!stated) return {};
  std::vector<std::string> unused = stated->unused;
  if (stated->max_seq_len && !has_lm_config(family)) unused.push_back("max_seq_len");
  return unused;
}

}  // namespace

constinit const std::span<const CheckpointFormat> minimind_formats = formats_of_minimind;

CheckpointContents contents_of(StoredTensors stored, std::string format, const std::string& path) {
  CheckpointContents contents;
  contents.format = std::move(format);
  contents.lora = take_lora(stored);
  if (stored.empty() && !contents.lora.empty()) {
    throw Error(fmt::format(
        "{}: is a LoRA without a model; load the model it was trained on with this file as its LoRA (--lora {})", path,
        path));
  }
  contents.canonical = to_canonical_names(std::move(stored), path);
  return contents;
}

CheckpointContents read_contents(const std::string& path, std::span<const CheckpointFormat> formats) {
  if (is_folder(path)) {
    HfFolder folder = read_hf_folder(path);
    return contents_of(std::move(folder.tensors), std::move(folder.format), path);
  }
  auto file = open_input(path);
  const auto format =
      std::ranges::find_if(formats, [&](const CheckpointFormat& each) { return each.recognises(file->start()); });
  if (format != formats.end()) return format->read(std::move(file));
  throw Error(fmt::format("{}: is {}{}", path, none_of(formats), shown_text(file->start())));
}

std::optional<StatedConfig> config_beside(const std::string& path) {
  if (is_folder(path)) return read_folder_config(path);
  const std::string_view extension = path_extension(path);
  const bool exported = extension == ".safetensors" || extension == ".bin";
  const std::string folder = parent_path(path);
  auto stated = read_folder_config(folder.empty() ? "." : folder);
  return stated && (exported || stated->settings > 0) ? std::move(stated) : std::nullopt;
}

Checkpoint with_config(CheckpointContents contents, Config config, const std::string& path) {
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.format = std::move(contents.format);
  checkpoint.config = std::move(config);
  checkpoint.tensors = std::move(contents.canonical.tensors);
  checkpoint.vector_type = contents.vector_type;
  checkpoint.metadata = std::move(contents.metadata);
  checkpoint.skipped = std::move(contents.canonical.skipped);
  checkpoint.other_modalities = std::move(contents.canonical.other_modalities);
  if (checkpoint.config.tie_word_embeddings) checkpoint.tensors.erase("lm_head.weight");
  check_tensors(checkpoint.tensors, checkpoint.config, path);
  return checkpoint;
}

Checkpoint make_checkpoint(CheckpointContents contents, const std::optional<StatedConfig>& stated,
                           const ConfigOverrides& overrides, const std::string& path) {
  InferredConfig inferred = infer_config(contents.canonical, stated, overrides, path);
  Checkpoint checkpoint = with_config(std::move(contents), std::move(inferred.config), path);
  checkpoint.unused_settings = unused_settings(stated, checkpoint.config.family);
  checkpoint.sources = std::move(inferred.sources);
  return checkpoint;
}

namespace {

// The path without ".", ".." and empty names, as if no folder in it were a link.
std::string normal_path(std::string_view path) {
  const bool is_absolute = path.starts_with('/');
  std::vector<std::string_view> names;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    const bool is_up = name == "..";
    if (is_up && !names.empty() && names.back() != "..") {
      names.pop_back();
    } else if (!name.empty() && name != "." && !(is_up && is_absolute)) {
      names.push_back(name);
    }
  }
  std::string normal(is_absolute ? "/" : "");
  for (const std::string_view name : names) normal = join_path(normal, name);
  return normal;
}

// The folder above `folder` by name. If `folder` is a link, `folder`/.. is another folder. "C:/" is a drive of Windows.
std::string named_parent(const std::string& folder) {
  const bool is_relative = !folder.empty() && !folder.starts_with('/') && folder.find(":/") != 1;
  return parent_path(normal_path(is_relative ? join_path(real_path("."), folder) : folder));
}

}  // namespace

std::vector<Surroundings> surroundings(const std::string& checkpoint_path) {
  std::vector<Surroundings> places;
  for (const std::string& checkpoint : {checkpoint_path, real_path(checkpoint_path)}) {
    if (checkpoint.empty()) continue;  // the file does not exist
    const std::string folder = is_folder(checkpoint_path) ? checkpoint : parent_path(checkpoint);
    places.push_back(
        {folder,
         {join_path(folder, "../model"), join_path(named_parent(folder), "model"), join_path(folder, "model")}});
  }
  return places;
}

std::string shorter(const std::string& path) {
  const std::string normal = normal_path(path);
  return is_same_file(normal, path) ? normal : path;
}

std::optional<std::string> find_tokenizer_json(const std::string& checkpoint_path) {
  for (const Surroundings& place : surroundings(checkpoint_path)) {
    std::vector<std::string> folders{place.folder};
    for (const std::string& model : place.model_folders) {
      folders.push_back(model);
      folders.push_back(join_path(model, "minimind_tokenizer"));
    }
    for (const std::string& folder : folders) {
      const std::string candidate = join_path(folder, "tokenizer.json");
      if (is_regular_file(candidate)) return shorter(candidate);
    }
  }
  return std::nullopt;
}

}  // namespace minimind
