#include "runtime/tokenizer/files.h"

#include "runtime/tokenizer/tokenizer_gguf.h"
#include "runtime/tokenizer/tokenizer_json.h"
#include "weights/gguf/reader.h"
#include "weights/io/mistaken_file.h"
#include "weights/io/path.h"

namespace minimind {

TokenizerData read_tokenizer(const std::string& path) {
  check_path(path);
  if (is_folder(path)) return read_tokenizer_json(path);
  const auto file = open_input(path);
  if (!looks_like_gguf(file->start())) return read_tokenizer_json(path);
  return read_tokenizer_gguf(read_gguf(file).metadata, path);
}

Tokenizer load_tokenizer(const std::string& path) {
  return Tokenizer(read_tokenizer(path));
}

}  // namespace minimind
