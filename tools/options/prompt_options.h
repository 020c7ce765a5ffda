#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/tokenizer/tokenizer.h"
#include "tools/options/options.h"

namespace minimind {

// The prompt of one text, as text or as token ids.
struct PromptOptions {
  TextOptions text;
  bool raw = false;
  std::optional<std::vector<std::int32_t>> tokens;

  void add_to(CommandOptions& command);

  // Throws UsageError if the options contradict each other.
  void check() const;

  // Returns the ids. The tokenizer may be null if they are given. Prints what is added to a text unless `quiet`. Throws
  // Error if there is no text.
  std::vector<std::int32_t> read(const Tokenizer* tokenizer, bool quiet) const;
};

}  // namespace minimind
