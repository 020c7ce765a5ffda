#include "tools/options/load_tokenizer.h"

#include <fmt/core.h>

#include "runtime/tokenizer/tokenizer_generation.h"
#include "tools/options/options.h"
#include "tools/terminal/note.h"
#include "weights/checkpoint/checkpoint.h"
#include "weights/io/error.h"

namespace minimind {

std::string require_tokenizer_path(const std::string& given, const std::string& model) {
  if (!given.empty()) return given;
  const std::string path = model_path(model);
  if (const auto found = find_tokenizer(path)) return *found;
  throw Error(
      fmt::format("{}: has {}no tokenizer.json beside it, nor in model/ or model/minimind_tokenizer/ beside it or one "
                  "folder up; give one with --tokenizer",
                  path, is_gguf(path) ? "no tokenizer in it and " : ""));
}

Tokenizer require_tokenizer(const std::string& given, const std::string& model) {
  return Tokenizer::load(require_tokenizer_path(given, model));
}

void warn_of_misfit(const Tokenizer& tokenizer, const std::string& path, const Config& config) {
  if (const auto misfit = tokenizer_misfit(tokenizer, config)) {
    note("{}: {}; text will be nonsense, so name the model's own with --tokenizer", path, translated_sentence(*misfit));
  }
}

std::optional<Tokenizer> load_tokenizer(const std::string& given, const std::string& model) {
  if (!given.empty()) return Tokenizer::load(given);
  const auto found = find_tokenizer(model_path(model));
  if (!found) return std::nullopt;
  try {
    return Tokenizer::load(*found);
  } catch (const Error& error) {
    if (!is_gguf(*found)) throw;
    note("{}", error.what());
    return std::nullopt;
  }
}

}  // namespace minimind
