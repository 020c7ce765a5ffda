#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/engine/context.h"
#include "runtime/engine/forward.h"

namespace minimind {

// Guesses how a text continues, for less than the model takes to compute it. A wrong guess costs time and nothing else:
// generate() takes of a draft what it would have sampled itself.
class Drafter {
 public:
  virtual ~Drafter() = default;

  // Up to `most` tokens of the vocabulary that may follow `tokens`, which are all of the text so far, the prompt with
  // what was generated, and at least one; none where it has no idea, or once `interrupted` is set. Any text may come
  // after any other; it is quick where most of it came before. Valid until the next call.
  virtual std::span<const std::int32_t> draft(std::span<const std::int32_t> tokens, std::size_t most,
                                              const std::atomic<bool>& interrupted) = 0;
};

// A smaller model that guesses what a larger one of the same vocabulary will say (Leviathan et al., arXiv:2211.17192):
// always its top-1 token. It keeps a context of its own and computes only what is new to it.
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

// Prompt lookup (Saxena, github.com/apoorvumang/prompt-lookup-decoding): what the text ends with has often been there
// before, in a quotation, a name or code that is edited; then it may continue as it did then. Of earlier occurrences
// the one that agrees furthest back is followed, the most recent of equals, by as many tokens as agree: a long
// agreement is a quotation, a short one may be chance. A draft that reaches the end of the text continues with itself,
// as a loop does.
//
// Occurrences of the last few tokens are chained, as LZ77 compressors do it: to look for them takes the same time in a
// text of any length, but only the most recent are compared.
class PromptLookup final : public Drafter {
 public:
  std::span<const std::int32_t> draft(std::span<const std::int32_t> tokens, std::size_t most,
                                      const std::atomic<bool>& interrupted) override;

 private:
  // Tokens before `end`, one after the last of them, that are those at the end of the text; 0 is none.
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
