#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/engine/context.h"
#include "runtime/engine/forward.h"
#include "runtime/generate/generate.h"

namespace minimind {

// A smaller model of the same vocabulary that predicts the tokens of a larger one (Leviathan et al., arXiv:2211.17192),
// always its top-1 token. It has a separate context and computes only new tokens.
class DraftModel final : public Drafter {
 public:
  // Drafts nothing for texts longer than the context, which must fit `forward`.
  DraftModel(Forward forward, Context context);

  std::span<const std::int32_t> draft(std::span<const std::int32_t> tokens, std::size_t most,
                                      const std::atomic<bool>& interrupted) override;

 private:
  Forward forward_;
  Context context_;
  std::vector<float> logits_;  // [vocab]
  std::vector<std::int32_t> drafts_;
};

// Prompt lookup (Saxena, github.com/apoorvumang/prompt-lookup-decoding): drafts the tokens that followed an earlier
// occurrence of the text's end, as in a quotation, a name or edited code. It follows the occurrence with the longest
// match, the most recent of equals, by as many tokens as match: a long match is a quotation, a short match may be
// chance. A draft that reaches the end of the text continues with itself, as a loop does.
//
// Occurrences of the last few tokens are chained, as in LZ77 compressors. A search takes constant time in a text of any
// length, because only the most recent occurrences are compared.
class PromptLookup final : public Drafter {
 public:
  std::span<const std::int32_t> draft(std::span<const std::int32_t> tokens, std::size_t most,
                                      const std::atomic<bool>& interrupted) override;

 private:
  // Returns the number of tokens before `end`, one after the last of them, that equal those at the end of the text.
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
  std::unordered_map<std::uint64_t, std::size_t> latest_;  // the end of the last occurrence of that key; 0: none
  std::vector<std::size_t> before_;  // [tokens], the end of the previous occurrence of the same key
  std::vector<std::int32_t> drafts_;
};

}  // namespace minimind
