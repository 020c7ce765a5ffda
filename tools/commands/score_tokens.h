#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/options/load_engine.h"

namespace minimind {

// Tokens [begin, end), read in a context of their own. Those from first_scored on are scored, each by the probability
// that the tokens before it in the window give it.
struct Window {
  std::size_t begin, first_scored, end;
};

// Windows over the text that is tokens [begin, end): they have `size` tokens and begin at begin, begin + stride, ...,
// and score what no earlier one has: every token but the text's very first is scored once, from the second window on
// with at least size - stride tokens before it. These are the windows of "Perplexity of fixed-length models" in Hugging
// Face's guide to transformers. Where the stride is the size, the first token of a window has none before it there and
// is scored at the end of the window before, which is one token longer. None for a text of less than 2 tokens. Wants
// 1 <= stride <= size and 2 <= size.
std::vector<Window> sliding_windows(std::size_t begin, std::size_t end, std::size_t size, std::size_t stride);

// What models say about texts, over all tokens that were scored.
struct TokenScores {
  std::size_t tokens = 0;
  double nats = 0;                // the sum of -ln p(token)
  std::vector<double> each_nats;  // its terms
  double against_nats = 0;        // the same of the second model
  std::vector<double> kl;         // for each token KL(second model || model), in nats; empty without a second model
  std::size_t agreeing = 0;       // tokens where both models find the same token likeliest
};

// Runs both models over the windows side by side, so that no more than one batch of logits is held; `against` may be
// null. Shows progress on a terminal. Ends early on Ctrl-C: then fewer tokens are scored than the windows hold, the
// first ones. Wants at least one window. Throws Error for ids outside the vocabulary and for logits that are not
// finite. Where `scored` is not empty it has an element for each token: those that are false are read and not scored.
TokenScores score_tokens(const Engine& model, const Engine* against, std::span<const std::int32_t> tokens,
                         std::span<const Window> windows, const std::vector<bool>& scored = {});

// How many tokens the windows score.
std::size_t scored_tokens(std::span<const Window> windows, const std::vector<bool>& scored = {});

// The value below which `fraction` of the values lie, interpolated linearly between neighbours as numpy.percentile
// does. Wants at least one value.
double quantile(std::vector<double> values, double fraction);

}  // namespace minimind
