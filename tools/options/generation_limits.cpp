#include "tools/options/generation_limits.h"

#include "runtime/generate/generate.h"
#include "tools/terminal/note.h"

namespace minimind {

std::vector<std::int32_t> end_tokens(const Engine& engine, const Tokenizer* tokenizer) {
  return end_tokens(engine.model.config, engine.eos_was_assumed, tokenizer);
}

void print_assumed_end(const Engine& engine, const Tokenizer* tokenizer) {
  if (!engine.eos_was_assumed || (tokenizer && tokenizer->eos_id())) return;
  note("assumed that token {} ends the text; --ignore-eos continues past it", engine.model.config.eos_token_id.front());
}

std::size_t context_size(std::optional<std::size_t> given, const Config& config, bool quiet) {
  if (!given) return config.max_position_embeddings;
  if (*given > config.max_position_embeddings && !quiet) {
    note("--ctx-size {} exceeds the model's context of {} positions", *given, config.max_position_embeddings);
  }
  return *given;
}

}  // namespace minimind
