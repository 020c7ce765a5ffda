#include "tools/options/find_template.h"

#include "weights/io/mistaken_file.h"
#include "weights/io/text_file.h"

namespace minimind {

std::optional<FoundTemplate> find_template(const std::string& given, const TokenizerData* tokenizer) {
  if (!given.empty()) {
    SpecialTokens special = tokenizer ? special_tokens_of(*tokenizer) : SpecialTokens();
    const std::string source = read_text_file(given);
    check_not_mistaken(source, given);
    return FoundTemplate{ChatTemplate(source, given, std::move(special)), given};
  }
  auto own = tokenizer ? ChatTemplate::of_tokenizer(*tokenizer) : std::nullopt;
  if (!own) return std::nullopt;
  return FoundTemplate{std::move(*own), tokenizer->chat_template_source};
}

}  // namespace minimind
