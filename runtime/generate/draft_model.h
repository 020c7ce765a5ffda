#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/engine/context.h"
#include "runtime/engine/forward.h"
#include "runtime/generate/drafter.h"

namespace minimind {

// A smaller model that guesses what a larger one of the same vocabulary will say (Leviathan et al., arXiv:2211.17192):
// always its likeliest token. It keeps a context of its own and computes only what is new to it.
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

}  // namespace minimind
