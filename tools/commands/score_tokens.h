#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/options/load_llm.h"

namespace minimind {

// Tokens [begin, end), run in a separate context. Those from first_scored on are scored, each by its probability after
// the tokens before it in the window.
struct Window {
  std::size_t begin, first_scored, end;
};

// Returns windows over the text of tokens [begin, end). They have `size` tokens and start at begin, begin + stride, and
// so on. Each scores the tokens that no earlier window has scored: every token of the text except the first is scored
// once, from the second window on with at least size - stride tokens before it. These are the windows of "Perplexity of
// fixed-length models" in Hugging Face's guide to transformers. If stride is size, the first token of a window has none
// before it, so the window before is one token longer and scores it. Returns no window for a text of less than 2
// tokens. Requires 1 <= stride <= size and 2 <= size.
std::vector<Window> sliding_windows(std::size_t begin, std::size_t end, std::size_t size, std::size_t stride);

// The scores of one or two models over all scored tokens.
struct TokenScores {
  std::size_t tokens = 0;
  double nats = 0;                // the sum of -ln p(token)
  std::vector<double> each_nats;  // its terms
  double against_nats = 0;        // the sum for the second model
  std::vector<double> kl;         // for each token KL(second model || model), in nats; empty without a second model
  std::size_t agreeing = 0;       // tokens for which both models have the same top-1 token
};

// Runs both models over the windows in step, so that memory has only one batch of logits; `against` may be null. Shows
// progress on a terminal. Ends early on Ctrl-C, with only the first tokens scored. Requires at least one window. Throws
// Error for ids outside the vocabulary and for logits that are not finite. If `scored` is not empty, it must have an
// element for each token: tokens with false are read, not scored.
TokenScores score_tokens(const LLM& model, const LLM* against, std::span<const std::int32_t> tokens,
                         std::span<const Window> windows, const std::vector<bool>& scored = {});

// Returns how many tokens the windows score.
std::size_t scored_tokens(std::span<const Window> windows, const std::vector<bool>& scored = {});

}  // namespace minimind
