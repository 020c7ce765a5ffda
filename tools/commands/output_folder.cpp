#include "tools/commands/output_folder.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <span>

#include "weights/base/error.h"
#include "weights/base/parallel.h"
#include "weights/io/path.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

// Whether readers of a Hugging Face folder look for this file.
bool is_part_of_a_model(const std::string& name) {
  static constexpr std::array<std::string_view, 12> names{
      "config.json",           "generation_config.json",       "model.safetensors.index.json",
      "pytorch_model.bin",     "pytorch_model.bin.index.json", "tokenizer.json",
      "tokenizer_config.json", "special_tokens_map.json",      "added_tokens.json",
      "chat_template.jinja",   "chat_template.json",           "vocab.json"};
  return std::find(names.begin(), names.end(), name) != names.end() || name.ends_with(".safetensors");
}

void check_contents(const std::string& folder, const std::vector<std::string>& names, bool replace) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!replace) throw Error(fmt::format("{}: already exists and has {}; --force writes into it", folder, name));
    if (is_part_of_a_model(name) && std::find(names.begin(), names.end(), name) == names.end()) {
      throw Error(
          fmt::format("{}: has {}, which would be read along with the new files; remove it first", folder, name));
    }
  }
}

}  // namespace

std::vector<std::string> files_read(const std::string& model, const CheckpointOptions& options,
                                    const Checkpoint& checkpoint, const std::optional<std::string>& tokenizer) {
  std::set<std::string> files{model};
  for (const auto& [name, tensor] : checkpoint.tensors) files.insert(tensor.file);
  for (const LoraFile& lora : options.open_options().loras) files.insert(lora.path);
  if (!options.config.empty()) files.insert(options.config);
  std::vector<fs::path> folders;
  if (is_folder(model)) folders.emplace_back(model);
  if (tokenizer) {
    files.insert(*tokenizer);
    folders.push_back(is_folder(*tokenizer) ? fs::path(*tokenizer) : fs::path(*tokenizer).parent_path());
  }
  for (const fs::path& folder : folders) {
    for (const char* name : {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
                             "special_tokens_map.json", "chat_template.jinja"}) {
      files.insert((folder / name).string());
    }
  }
  return {files.begin(), files.end()};
}

void check_not_read(const std::string& written, const std::vector<std::string>& read) {
  for (const std::string& file : read) {
    std::error_code failed;
    if (fs::equivalent(written, file, failed)) {
      throw UsageError(fmt::format("{}: is also an input; name another output", written));
    }
  }
}

OutputFolder::OutputFolder(std::string path, const std::vector<std::string>& names, bool replace)
    : path_(std::move(path)) {
  std::error_code failed;
  if (fs::exists(path_, failed) && !fs::is_directory(path_, failed)) {
    throw Error(
        fmt::format("{}: is a file, expected a folder to write to; name a .gguf or .pth to write one file", path_));
  }
  if (fs::is_directory(path_, failed)) {
    for (const std::string& name : names) remove_stale_parts((fs::path(path_) / name).string());
    check_contents(path_, names, replace);
    return;
  }
  unfinished_.emplace(path_);
  made_ = fs::create_directory(path_, failed);
  if (!made_)
    throw Error(fmt::format("{}: cannot create this folder: {}{}", path_, failed.message(), advice_on_home(path_)));
}

OutputFolder::~OutputFolder() {
  files_.clear();
  std::error_code ignored;
  if (made_ && !committed_) fs::remove(path_, ignored);
}

OutputFile& OutputFolder::add(const std::string& name, OutputFile::Watch watch) {
  files_.push_back(std::make_unique<OutputFile>((fs::path(path_) / name).string(), std::move(watch)));
  return *files_.back();
}

void OutputFolder::add_text(const std::string& name, const std::string& text) {
  add(name).write(std::as_bytes(std::span(text)));
}

void OutputFolder::commit() {
  for (const auto& file : files_) file->finish();
  const HeldSignals held;  // all files or none
  for (const auto& file : files_) file->commit();
  committed_ = true;
  unfinished_.reset();
}

}  // namespace minimind
