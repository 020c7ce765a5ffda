#include "runtime/tokenizer/tokenizer_data.h"

namespace minimind {

std::optional<std::string> token_text(const TokenizerData& data, std::int32_t id) {
  for (const AddedToken& token : data.added_tokens) {
    if (token.id == id) return token.content;
  }
  for (const auto& [text, token_id] : data.vocab) {
    if (token_id == id) return text;
  }
  return std::nullopt;
}

bool is_just(const TokenizerData& data, const std::vector<std::int32_t>& ids, const std::optional<std::string>& name) {
  return name && ids.size() == 1 && token_text(data, ids.front()) == name;
}

}  // namespace minimind
