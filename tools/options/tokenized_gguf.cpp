#include "tools/options/tokenized_gguf.h"

#include <algorithm>
#include <cstdint>

#include "runtime/tokenizer/tokenizer_gguf.h"
#include "runtime/tokenizer/tokenizer_json_writer.h"

namespace minimind {
namespace {

TokenizerData with_end_of(const Checkpoint& checkpoint, TokenizerData data) {
  const std::vector<std::int32_t>& ends = checkpoint.config.eos_token_id;
  if (checkpoint.sources.at("eos_token_id").kind == ConfigSource::Kind::assumed) return data;
  const bool agrees = std::any_of(ends.begin(), ends.end(), [&](std::int32_t id) {
    return data.eos_token && token_text(data, id) == data.eos_token;
  });
  if (!agrees) data.eos_token = token_text(data, ends.front());
  return data;
}

}  // namespace

GgufExport export_with_tokenizer(const Checkpoint& checkpoint, const WantedTypes& types,
                                 const std::optional<TokenizerData>& tokenizer, const std::string& name,
                                 std::size_t threads, std::vector<Fact>& differences) {
  GgufExport model = export_gguf(checkpoint, types, name, threads);
  if (tokenizer) {
    differences = set_tokenizer(model.metadata, with_end_of(checkpoint, *tokenizer), checkpoint.config.vocab_size);
  } else {
    model.metadata.set_string("tokenizer.ggml.model", "no_vocab");
  }
  return model;
}

}  // namespace minimind
