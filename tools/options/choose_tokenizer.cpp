#include "tools/options/choose_tokenizer.h"

#include <fmt/core.h>

#include "runtime/tokenizer/files.h"
#include "tools/options/command_line.h"
#include "tools/options/help.h"
#include "tools/options/options.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"
#include "weights/base/error.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {

void add_tokenizer(CommandOptions& command, std::string& path) {
  command.add_option("--tokenizer", path, model_group, "PATH",
                     bilingual("tokenizer.json, its folder, or a .gguf", "tokenizer.json、其所在文件夹，或 .gguf"));
}

std::string require_tokenizer_path(const std::string& given, const std::string& model) {
  if (!given.empty()) return given;
  const std::string path = model_path(model);
  if (const auto found = find_tokenizer(path)) return *found;
  throw Error(
      fmt::format("{}: has no tokenizer{}, expected a tokenizer.json in its folder, or in model/ or "
                  "model/minimind_tokenizer/ there or one folder up; name one with --tokenizer",
                  path, is_gguf(path) ? " inside" : ""));
}

Tokenizer require_tokenizer(const std::string& given, const std::string& model) {
  return load_tokenizer(require_tokenizer_path(given, model));
}

std::optional<Tokenizer> optional_tokenizer(const std::string& given, const std::string& model) {
  if (!given.empty()) return load_tokenizer(given);
  const auto found = find_tokenizer(model_path(model));
  if (!found) return std::nullopt;
  try {
    return load_tokenizer(*found);
  } catch (const Error& error) {
    if (!is_gguf(*found)) throw;
    note("{}", message_of(error));
    return std::nullopt;
  }
}

}  // namespace minimind
