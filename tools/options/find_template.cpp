#include "tools/options/find_template.h"

#include "tools/terminal/note.h"
#include "weights/io/mistaken_file.h"
#include "weights/io/text_file.h"

namespace minimind {

void add_template(CLI::App& command, std::string& path) {
  command.add_option("--template", path, "Jinja file with the chat template (default: the checkpoint's)");
}

void add_plain_content(CLI::App& command, bool& plain_content) {
  command.add_flag("--plain-content", plain_content,
                   "messages and tools are ordinary text, also where they spell control tokens");
}

std::optional<FoundTemplate> find_template(const std::string& given, const TokenizerData* tokenizer) {
  if (!given.empty()) {
    SpecialTokens special = tokenizer ? special_tokens_of(*tokenizer) : SpecialTokens();
    const std::string source = read_text_or_pipe(given);
    check_not_mistaken(source, given);
    return FoundTemplate{ChatTemplate(source, given, std::move(special)), given};
  }
  auto own = tokenizer ? ChatTemplate::of_tokenizer(*tokenizer) : std::nullopt;
  if (!own) return std::nullopt;
  return FoundTemplate{std::move(*own), tokenizer->chat_template_source};
}

ChatTemplate template_or_family(const std::string& given, const TokenizerData& tokenizer, Family family, bool quiet) {
  if (auto found = find_template(given, &tokenizer)) {
    if (!quiet) note("chat template from {}", found->source);
    return std::move(found->chat_template);
  }
  if (!quiet) note("chat template of family {}: the checkpoint has none", name_of(family));
  return ChatTemplate::of_family(family, special_tokens_of(tokenizer));
}

}  // namespace minimind
