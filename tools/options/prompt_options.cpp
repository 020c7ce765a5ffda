#include "tools/options/prompt_options.h"

#include <span>
#include <string>

#include "tools/options/help.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"
#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

std::string quoted_text(const Tokenizer& tokenizer, std::span<const std::int32_t> ids) {
  return quote(tokenizer.decode(ids, false));
}

void tell_of_added(const Tokenizer& tokenizer, std::span<const std::int32_t> before) {
  if (before.empty() && tokenizer.after_text().empty()) return;
  if (tokenizer.after_text().empty()) {
    note("the prompt is {} and the text, as in MiniMind's eval_llm.py; --raw adds nothing",
         quoted_text(tokenizer, before));
  } else {
    note("the prompt is {}, the text and {}, which the tokenizer adds; --raw adds nothing",
         quoted_text(tokenizer, before), quoted_text(tokenizer, tokenizer.after_text()));
  }
}

void tell_of_bos(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<std::int32_t> before = tokenizer.before_text();
  const auto bos = tokenizer.bos_id();
  if (!bos) note("the tokenizer has no bos_token: nothing is added before the text");
  if (bos && !text.starts_with(tokenizer.token_text(*bos))) before.push_back(*bos);
  tell_of_added(tokenizer, before);
}

}  // namespace

void PromptOptions::add_to(CommandOptions& command) {
  text.add_to(command);
  command.add_flag(
      "--raw", raw, prompt_group,
      bilingual("continue the text alone (default: bos_token and the text, as MiniMind's eval_llm.py does)",
                "只续写文本本身（默认：bos_token 加文本，与 MiniMind 的 eval_llm.py 相同）"));
  command.add_option_function<std::string>(
      "--tokens", [this](const std::string& ids) { tokens = parse_token_ids(ids, "--tokens"); }, prompt_group, "IDS",
      bilingual("prompt as token ids, e.g. 1,2,3; nothing is added", "以词元 id 给出提示词，如 1,2,3；不添加任何词元"));
}

void PromptOptions::check() const {
  if (tokens && text.given()) throw UsageError("the prompt is given twice, as --tokens and as text; give one of them");
  if (tokens && tokens->empty()) throw UsageError("--tokens is empty, expected token ids, e.g. 1,2,3");
  if (tokens && raw) throw UsageError("--raw is for text, but the prompt is --tokens; omit --raw");
  if (text.has_prompt && text.prompt.empty()) throw UsageError("--prompt is empty, expected text to continue");
}

std::vector<std::int32_t> PromptOptions::read(const Tokenizer* tokenizer, bool quiet) const {
  if (tokens) return *tokens;
  const std::string given = text.read();
  if (given.empty()) throw Error("the prompt is empty, expected text to continue");
  if (raw) return tokenizer->encode(given);
  if (!quiet) tell_of_bos(*tokenizer, given);
  return tokenizer->encode_prompt(given);
}

}  // namespace minimind
