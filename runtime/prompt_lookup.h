#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/drafter.h"

namespace minimind {

// Prompt lookup (Saxena, github.com/apoorvumang/prompt-lookup-decoding): what the text ends with has often been there
// before, in a quotation, a name or code that is edited; then it may go on as it did then. Of earlier occurrences the
// one that agrees furthest back is followed, the most recent of equals. A draft that reaches the end of the text goes
// on with itself, as a loop does.
//
// Occurrences of the last few tokens are chained, as LZ77 compressors do it: a token costs the same in a text of any
// length, but only the most recent occurrences are compared.
class PromptLookup final : public Drafter {
 public:
  // Drafts where at least `shortest_match` tokens, 1 or more, are repeated.
  explicit PromptLookup(std::size_t shortest_match = 2) : shortest_match_(shortest_match) {}

  std::span<const std::int32_t> draft(std::span<const std::int32_t> tokens, std::size_t most,
                                      const std::atomic<bool>& interrupted) override;

 private:
  void index(std::span<const std::int32_t> tokens);
  void push(std::int32_t token);
  void pop();
  std::uint64_t key_of_end() const;
  std::size_t agreement(std::size_t end) const;
  std::size_t best_occurrence() const;

  std::size_t shortest_match_;
  std::vector<std::int32_t> tokens_;  // indexed
  // An occurrence of shortest_match tokens is known by where it ends, one behind its last token; 0 is none.
  std::unordered_map<std::uint64_t, std::size_t> latest_;  // occurrence of a key
  std::vector<std::size_t> before_;                        // [tokens], of the same key as the one that ends here
  std::vector<std::int32_t> drafts_;
};

}  // namespace minimind
