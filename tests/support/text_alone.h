#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/engine/forward.h"

namespace minimind {

// A text, what it gives when it runs alone, and how far it has come among others.
struct TextAlone {
  std::vector<std::int32_t> tokens;
  std::vector<float> logits;  // [tokens, vocab], of the text alone
  Context context;
};

// Returns the logits of these pieces, each text alone: [rows whose logits are wanted, vocab].
inline std::vector<float> logits_alone(const std::vector<TextAlone>& all, std::span<const Piece> pieces,
                                       std::size_t vocab) {
  std::vector<float> logits;
  for (const Piece& piece : pieces) {
    const auto text = std::ranges::find(all, piece.context, [](const TextAlone& of) { return &of.context; });
    const std::size_t end = piece.context->size() + piece.tokens.size();
    const auto last = text->logits.begin() + static_cast<std::ptrdiff_t>(end * vocab);
    logits.insert(logits.end(), last - static_cast<std::ptrdiff_t>(piece.logit_rows * vocab), last);
  }
  return logits;
}

}  // namespace minimind
