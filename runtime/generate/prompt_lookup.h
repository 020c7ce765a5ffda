#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/generate/drafter.h"

namespace minimind {

// Prompt lookup (Saxena, github.com/apoorvumang/prompt-lookup-decoding): what the text ends with has often been there
// before, in a quotation, a name or code that is edited; then it may go on as it did then. Of earlier occurrences the
// one that agrees furthest back is followed, the most recent of equals, by as many tokens as agree: a long agreement
// is a quotation, a short one may be chance. A draft that reaches the end of the text goes on with itself, as a loop
// does.
//
// Occurrences of the last few tokens are chained, as LZ77 compressors do it: to look for them takes the same time in a
// text of any length, but only the most recent are compared.
class PromptLookup final : public Drafter {
 public:
  std::span<const std::int32_t> draft(std::span<const std::int32_t> tokens, std::size_t most,
                                      const std::atomic<bool>& interrupted) override;

 private:
  // Tokens before `end`, one behind the last of them, that are those at the end of the text; 0 is none.
  struct Occurrence {
    std::size_t end = 0;
    std::size_t tokens = 0;
  };
  void index(std::span<const std::int32_t> tokens);
  void push(std::int32_t token);
  void pop();
  std::uint64_t key_of_end() const;
  std::size_t agreement(std::size_t end) const;
  Occurrence best_occurrence() const;

  std::vector<std::int32_t> tokens_;                       // indexed
  std::unordered_map<std::uint64_t, std::size_t> latest_;  // where the last few tokens of that key end; 0: nowhere
  std::vector<std::size_t> before_;                        // [tokens], where those of the same key ended before
  std::vector<std::int32_t> drafts_;
};

}  // namespace minimind
