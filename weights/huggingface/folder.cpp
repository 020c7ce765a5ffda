#include "weights/huggingface/folder.h"

#include <dirent.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/huggingface/safetensors.h"
#include "weights/io/input_file.h"
#include "weights/io/json_fields.h"
#include "weights/io/path.h"
#include "weights/io/text_file.h"
#include "weights/torch/pth.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

// Our own limit: each is open while tensors are read from it, and a process may have some 1000 files open.
constexpr std::size_t most_shards = 256;

constexpr std::array weight_names{"model.safetensors", "pytorch_model.bin"};

std::string index_of(const std::string& name) {
  return name + ".index.json";
}

StoredTensors read_weights_file(const std::string& path) {
  auto file = open_input(path);
  if (looks_like_safetensors(file->start())) return read_safetensors(std::move(file));
  if (looks_like_pth(file->start())) return read_pth(std::move(file));
  throw Error(fmt::format("{}: is neither safetensors nor a torch.save file{}; copy or download it again", path,
                          shown_text(file->start())));
}

// Tensor name -> shard file, from an index such as model.safetensors.index.json.
std::map<std::string, std::string> read_index(const std::string& path) {
  const Json index = parse_json_object(read_text_file(path), path);
  const JsonFields shards = JsonFields(index, path, "").required_object("weight_map");
  if (const std::size_t count = index["weight_map"].size(); count > largest_tensor_count) {
    throw Error(fmt::format("{}: lists {} tensors, expected at most {}", path, count, largest_tensor_count));
  }
  std::map<std::string, std::string> shard_of;
  for (const auto& [tensor, shard] : index["weight_map"].items()) {
    const std::string name = shards.required_text(tensor);
    if (name.empty() || name.size() > NAME_MAX || name == "." || name == ".." ||
        name.find_first_of("/\\:") != std::string::npos || name.find('\0') != std::string::npos) {
      shards.fail(tensor, "the name of a file next to the index");
    }
    shard_of[tensor] = name;
  }
  return shard_of;
}

StoredTensors read_shards(const std::string& folder, const std::string& index_name, std::size_t& shard_count) {
  const std::string index_path = join_path(folder, index_name);
  const auto shard_of = read_index(index_path);
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : shard_of) shards.insert(shard);
  shard_count = shards.size();
  if (shard_count > most_shards) {
    throw Error(fmt::format("{}: lists {} files, expected at most {}", index_path, shard_count, most_shards));
  }
  StoredTensors all;
  for (const std::string& shard : shards) {
    for (auto& [name, tensor] : read_weights_file(join_path(folder, shard))) {
      const auto listed = shard_of.find(name);
      if (listed == shard_of.end() || listed->second != shard) {
        throw Error(
            fmt::format("{}: tensor {} is in {}, expected it in the index too", index_path, quote(name), shard));
      }
      all.emplace(name, std::move(tensor));
    }
  }
  for (const auto& [tensor, shard] : shard_of) {
    if (!all.contains(tensor)) {
      throw Error(
          fmt::format("{}: tensor {} is missing in {}, expected it as listed", index_path, quote(tensor), shard));
    }
  }
  return all;
}

// The advice if the user names MiniMind's out/ folder.
std::string checkpoints_in(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, void (*)(DIR*)> entries(::opendir(folder.c_str()), [](DIR* open) { ::closedir(open); });
  while (const dirent* const entry = entries ? ::readdir(entries.get()) : nullptr) {
    const std::string_view extension = path_extension(entry->d_name);
    if (extension == ".pth" || extension == ".pt") names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  if (names.empty()) return "";
  std::string text = "; name one of its checkpoints: ";
  for (std::size_t i = 0; i < names.size() && i < 5; ++i) text += (i > 0 ? ", " : "") + names[i];
  return text + (names.size() > 5 ? ", ..." : "");
}

}  // namespace

std::optional<StatedConfig> read_folder_config(const std::string& folder) {
  const std::string config = join_path(folder, "config.json");
  if (!is_there(config)) return std::nullopt;
  StatedConfig stated = parse_config_json(read_text_file(config), config);
  const std::string generation = join_path(folder, "generation_config.json");
  if (is_there(generation)) {
    const StatedConfig more = parse_config_json(read_text_file(generation), generation);
    stated.eos_token_id.insert(stated.eos_token_id.end(), more.eos_token_id.begin(), more.eos_token_id.end());
  }
  return stated;
}

bool is_hf_folder(const std::string& folder) {
  for (const char* name : weight_names) {
    if (is_there(join_path(folder, name)) || is_there(join_path(folder, index_of(name)))) return true;
  }
  return false;
}

HfFolder read_hf_folder(const std::string& folder) {
  for (const char* name : weight_names) {
    const bool safetensors = std::string_view(name).ends_with(".safetensors");
    const std::string format = safetensors ? "safetensors" : "torch.save";
    const std::string index = index_of(name), file = join_path(folder, name);
    if (is_there(file)) return {read_weights_file(file), format};
    if (is_there(join_path(folder, index))) {
      std::size_t shards = 0;
      HfFolder result{read_shards(folder, index, shards), ""};
      result.format = fmt::format("{}, {} shards", format, shards);
      return result;
    }
  }
  throw Error(
      fmt::format("{}: is a folder without model.safetensors or pytorch_model.bin{}", folder, checkpoints_in(folder)));
}

}  // namespace minimind
