#include "tools/find_template.h"

#include "weights/text_file.h"

namespace minimind {

std::optional<FoundTemplate> find_template(const std::string& given, const TokenizerData* tokenizer) {
  SpecialTokens special = tokenizer ? special_tokens_of(*tokenizer) : SpecialTokens();
  if (!given.empty()) return FoundTemplate{ChatTemplate(read_text_file(given), given, std::move(special)), given};
  if (!tokenizer || !tokenizer->chat_template) return std::nullopt;
  const std::string source = tokenizer->source + ": chat_template";
  return FoundTemplate{ChatTemplate(*tokenizer->chat_template, source, std::move(special)), source};
}

}  // namespace minimind
