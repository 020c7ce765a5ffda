#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "runtime/generate/generate.h"
#include "runtime/generate/speculate.h"
#include "tools/options/command_options.h"
#include "tools/options/load_llm.h"
#include "tools/options/options.h"

namespace minimind {

// The options of speculative decoding: --speculate and --draft.
struct SpeculationArguments {
  std::optional<std::size_t> speculate;
  std::string draft;

  void add_to(CommandOptions& command);

  // Returns how many tokens to draft at once at most, by a draft model or otherwise by prompt lookup; 0: none. Throws
  // UsageError for a draft model with --speculate 0.
  std::size_t draft_tokens() const;

  // Throws UsageError as draft_tokens() does.
  void check() const { draft_tokens(); }
};

// The drafter of a model with everything it requires; empty if the arguments request none.
class Speculation {
 public:
  // Loads the draft model for contexts of `capacity` tokens, always as stored: --type, --lora and others do not apply.
  // Throws Error if its vocabulary differs from the model's or its tokenizer from the model's, if that has one, and as
  // loading does.
  Speculation(const SpeculationArguments& arguments, const LLM& llm, std::size_t capacity, const RunOptions& run);

  // The most tokens that are drafted at once; 0 if there is no drafter.
  std::size_t draft_tokens() const { return draft_tokens_; }

  // Lets a text make use of the drafter, if there is one. This must outlive it.
  void speed_up(GenerateOptions& options) const {
    options.drafter = drafter_.get();
    options.draft_tokens = draft_tokens_;
  }

 private:
  std::size_t draft_tokens_;
  std::unique_ptr<const LLM> draft_llm_;
  std::unique_ptr<Drafter> drafter_;
};

// Returns a text such as "57 of 80 drafts accepted (71%)".
std::string describe_drafts(const Generated& result);

}  // namespace minimind
