#include "tools/options/speculation_options.h"

#include <fmt/core.h>

#include "tools/options/choose_tokenizer.h"
#include "tools/options/help.h"
#include "tools/terminal/language.h"
#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

constexpr std::size_t default_draft_tokens = 4;
static_assert(default_draft_tokens == 4, "as the help of --speculate says");
constexpr int most_draft_tokens = 64;

void check_same_tokens(const Tokenizer& tokenizer, const Tokenizer& draft, std::size_t vocab_size,
                       const std::string& draft_path) {
  for (std::size_t i = 0; i < vocab_size; ++i) {
    const auto id = static_cast<std::int32_t>(i);
    const bool same = tokenizer.has(id) == draft.has(id) && tokenizer.token_bytes(id) == draft.token_bytes(id) &&
                      tokenizer.is_special(id) == draft.is_special(id);
    if (same) continue;
    const auto text_in = [id](const Tokenizer& one) -> std::string {
      return one.has(id) ? quote(one.token_text(id)) : "unused";
    };
    throw Error(
        fmt::format("{}: token {} is {}, expected {} as in the target model; --draft requires a model with "
                    "the same tokenizer",
                    draft_path, id, text_in(draft), text_in(tokenizer)));
  }
}

void check_same_vocabulary(const LLM& llm, const LLM& draft, const std::string& draft_path) {
  const std::size_t expected = llm.config.vocab_size, found = draft.config.vocab_size;
  if (found != expected) {
    throw Error(
        fmt::format("{}: has a vocabulary of {} tokens, expected {} as in the target model; --draft requires "
                    "a model with the same tokenizer",
                    draft_path, found, expected));
  }
  if (!llm.tokenizer) return;
  const auto draft_tokenizer = optional_tokenizer("", draft_path);
  if (draft_tokenizer) check_same_tokens(*llm.tokenizer, *draft_tokenizer, expected, draft_path);
}

}  // namespace

void SpeculationArguments::add_to(CommandOptions& command) {
  command
      .add_option("--speculate", speculate, speed_group, "N",
                  bilingual("speculative decoding: draft up to N tokens from the earlier text, or with --draft, and "
                            "check them at once; the text stays the same; 0: off (default: 0; with --draft 4)",
                            "推测解码：根据前文或用 --draft 起草至多 N "
                            "个词元，再一并校验；输出不变；0：关闭（默认：0；有 --draft 时为 4）"))
      ->transform(whole_number(0, most_draft_tokens));
  command.add_option("--draft", draft, speed_group, "MODEL",
                     bilingual("smaller draft model with the same tokenizer", "草稿模型：分词器相同的较小模型"));
}

std::size_t SpeculationArguments::draft_tokens() const {
  if (draft.empty()) return speculate.value_or(0);
  if (speculate == 0) throw UsageError("--draft has no effect with --speculate 0; omit one of them");
  return speculate.value_or(default_draft_tokens);
}

Speculation::Speculation(const SpeculationArguments& arguments, const LLM& llm, std::size_t capacity,
                         const RunOptions& run)
    : draft_tokens_(arguments.draft_tokens()) {
  if (draft_tokens_ == 0) return;
  if (arguments.draft.empty()) {
    drafter_ = std::make_unique<PromptLookup>();
    return;
  }
  CheckpointOptions checkpoint;
  checkpoint.model = arguments.draft;
  draft_llm_ = std::make_unique<LLM>(load_llm(checkpoint, run.as_stored()));
  check_same_vocabulary(llm, *draft_llm_, arguments.draft);
  drafter_ = std::make_unique<DraftModel>(draft_llm_->forward(capacity, capacity), draft_llm_->context(capacity));
}

std::string describe_drafts(const Generated& result) {
  if (result.drafted == 0) return localized("no drafts");
  return localized("{} of {} drafts accepted ({:.0f}%)", result.accepted, result.drafted,
                   100 * static_cast<double>(result.accepted) / static_cast<double>(result.drafted));
}

}  // namespace minimind
