#include "weights/checkpoint/checkpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "weights/base/error.h"
#include "weights/checkpoint/surroundings.h"
#include "weights/huggingface/folder.h"
#include "weights/huggingface/safetensors.h"
#include "weights/io/mistaken_file.h"
#include "weights/io/text_file.h"
#include "weights/model/check_tensors.h"
#include "weights/torch/pth.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

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
  check_path(path);
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
  const fs::path file(path);
  const bool exported = file.extension() == ".safetensors" || file.extension() == ".bin";
  auto stated = read_folder_config(file.parent_path().empty() ? "." : file.parent_path().string());
  return stated && (exported || stated->settings > 0) ? std::move(stated) : std::nullopt;
}

Checkpoint make_checkpoint(CheckpointContents contents, const std::optional<StatedConfig>& stated,
                           const ConfigOverrides& overrides, const std::string& path) {
  InferredConfig inferred = infer_config(contents.canonical, stated, overrides, path);
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.format = std::move(contents.format);
  checkpoint.unused_settings = unused_settings(stated, inferred.config.family);
  checkpoint.config = std::move(inferred.config);
  checkpoint.sources = std::move(inferred.sources);
  checkpoint.tensors = std::move(contents.canonical.tensors);
  checkpoint.vector_type = contents.vector_type;
  checkpoint.metadata = std::move(contents.metadata);
  checkpoint.skipped = std::move(contents.canonical.skipped);
  checkpoint.other_modalities = std::move(contents.canonical.other_modalities);
  if (checkpoint.config.tie_word_embeddings) checkpoint.tensors.erase("lm_head.weight");
  check_tensors(checkpoint.tensors, checkpoint.config, path);
  return checkpoint;
}

std::optional<std::string> find_tokenizer_json(const std::string& checkpoint_path) {
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
