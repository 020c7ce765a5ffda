#include "tools/commands/files_read.h"

#include <fmt/core.h>

#include <filesystem>
#include <set>

#include "weights/base/error.h"
#include "weights/io/text_file.h"

namespace minimind {

namespace fs = std::filesystem;

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

}  // namespace minimind
