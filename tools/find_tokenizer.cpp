#include "tools/find_tokenizer.h"

#include <fmt/core.h>

#include "tools/options.h"
#include "weights/checkpoint.h"
#include "weights/error.h"

namespace minimind {

std::string require_tokenizer(const std::string& given, const std::string& model) {
  if (!given.empty()) return given;
  const std::string path = model_path(model);
  if (const auto found = find_tokenizer(path)) return *found;
  throw Error(fmt::format("{}: has {}no tokenizer.json beside it or in ../model/; give one with --tokenizer", path,
                          is_gguf(path) ? "no tokenizer in it and " : ""));
}

std::optional<Tokenizer> load_tokenizer(const std::string& given, const std::string& model) {
  if (!given.empty()) return Tokenizer::load(given);
  if (const auto found = find_tokenizer(model_path(model))) return Tokenizer::load(*found);
  return std::nullopt;
}

}  // namespace minimind
