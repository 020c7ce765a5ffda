#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "runtime/generate/generate.h"
#include "runtime/generate/speculate.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tools/options/load_engine.h"
#include "tools/options/options.h"

namespace minimind {

// How the commands that generate look ahead: --speculate and --draft.
struct SpeculationArguments {
  std::optional<std::size_t> speculate;
  std::string draft;

  void add_to(CLI::App& command);

  // At most so many tokens are drafted at once, by a draft model or else by prompt lookup; 0: none. Throws UsageError
  // for a draft model that has nothing to do.
  std::size_t draft_tokens() const;
};

// What drafts for an engine, with all that it needs: nothing where the arguments ask for none.
class Speculation {
 public:
  // Loads the draft model, as it is stored and whatever is done with the engine's, for contexts of `capacity` tokens.
  // Throws Error when it has another vocabulary than the engine or another tokenizer than `tokenizer`, which may be
  // null, and as loading does.
  Speculation(const SpeculationArguments& arguments, const Engine& engine, const Tokenizer* tokenizer,
              std::size_t capacity, const RunOptions& run);

  // Null where there is none.
  Drafter* drafter() const { return drafter_.get(); }

 private:
  std::unique_ptr<const Engine> draft_engine_;
  std::unique_ptr<Drafter> drafter_;
};

// "57 of 80 drafts accepted (71%)"
std::string describe_drafts(const Generated& result);

}  // namespace minimind
