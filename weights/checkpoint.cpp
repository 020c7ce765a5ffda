#include "weights/checkpoint.h"

#include <fmt/core.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "weights/error.h"
#include "weights/expected_tensors.h"
#include "weights/families.h"
#include "weights/gguf.h"
#include "weights/hf_folder.h"
#include "weights/pth.h"
#include "weights/quote.h"
#include "weights/safetensors.h"
#include "weights/text_file.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

bool starts_with(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

HfFolder read_single_file(const std::string& path) {
  auto file = MappedFile::open(path);
  if (looks_like_pth(file->bytes())) return {read_pth(std::move(file)), "torch.save"};
  if (looks_like_safetensors(file->bytes())) return {read_safetensors(std::move(file)), "safetensors"};
  if (starts_with(file->bytes(), "GGUF")) {
    throw Error(
        fmt::format("{}: is a GGUF file, which this version does not read; give the .pth, .safetensors or "
                    "Hugging Face folder it was made from",
                    path));
  }
  throw Error(fmt::format("{}: is neither a torch.save file (.pth, .pt, .bin) nor safetensors", path));
}

// A .pth stands alone in MiniMind's out/ folder; the files of a Hugging Face export belong to the config beside them.
std::optional<StatedConfig> stated_config(const std::string& path, const OpenOptions& options) {
  if (options.config_path) {
    StatedConfig stated = parse_config_json(read_text_file(*options.config_path), *options.config_path);
    if (stated.settings == 0) throw Error(fmt::format("{}: holds no setting of a model", *options.config_path));
    return stated;
  }
  if (is_folder(path)) return read_folder_config(path);
  const fs::path file(path);
  const bool exported = file.extension() == ".safetensors" || file.extension() == ".bin";
  return exported ? read_folder_config(file.parent_path().empty() ? "." : file.parent_path().string()) : std::nullopt;
}

// llama.cpp's names for a model without a tokenizer are "none" and "no_vocab".
bool holds_tokenizer(const GgufMetadata& metadata) {
  const GgufValue* const model = metadata.find("tokenizer.ggml.model");
  const auto* const name = model ? std::get_if<std::string>(&model->data) : nullptr;
  return model && !(name && (*name == "none" || *name == "no_vocab"));
}

}  // namespace

Checkpoint open_checkpoint(const std::string& path, const OpenOptions& options) {
  Checkpoint checkpoint;
  checkpoint.path = path;
  HfFolder stored = is_folder(path) ? read_hf_folder(path) : read_single_file(path);
  checkpoint.format = std::move(stored.format);
  const auto stated = stated_config(path, options);
  CanonicalTensors canonical = to_canonical_names(std::move(stored.tensors), path);
  InferredConfig inferred = infer_config(canonical, stated, options.overrides, path);
  checkpoint.config = std::move(inferred.config);
  checkpoint.sources = std::move(inferred.sources);
  checkpoint.tensors = std::move(canonical.tensors);
  checkpoint.skipped = std::move(canonical.skipped);
  if (stated) checkpoint.unused_settings = stated->unused;
  if (checkpoint.config.tie_word_embeddings) checkpoint.tensors.erase("lm_head.weight");
  check_tensors(checkpoint.tensors, checkpoint.config, path);
  for (const LoraFile& lora : options.loras) {
    const std::vector<std::string> changed = add_lora(checkpoint.tensors, lora);
    checkpoint.lora_changed.insert(checkpoint.lora_changed.end(), changed.begin(), changed.end());
  }
  return checkpoint;
}

bool is_gguf(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;
  std::ifstream file(path, std::ios::binary);
  std::array<char, 4> magic{};
  return file.read(magic.data(), magic.size()) && looks_like_gguf(std::as_bytes(std::span(magic)));
}

std::optional<std::string> find_tokenizer(const std::string& checkpoint_path) {
  if (is_gguf(checkpoint_path) && holds_tokenizer(read_gguf(MappedFile::open(checkpoint_path)).metadata)) {
    return checkpoint_path;
  }
  const fs::path path(checkpoint_path);
  const fs::path folder = is_folder(checkpoint_path) ? path : path.parent_path();
  for (const fs::path& candidate : {folder / "tokenizer.json", folder / ".." / "model" / "tokenizer.json"}) {
    std::error_code ignored;
    if (fs::is_regular_file(candidate, ignored)) return candidate.lexically_normal().string();
  }
  return std::nullopt;
}

}  // namespace minimind
