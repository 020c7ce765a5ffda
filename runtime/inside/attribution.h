#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/engine/model.h"
#include "runtime/inside/points.h"
#include "runtime/inside/recording.h"

namespace minimind {

struct LikelyToken {
  std::int32_t token;
  double probability;  // softmax of the logits, before temperature and all other sampling
};

// What one layer did for a token.
struct LayerShare {
  double attention = 0, feed_forward = 0;  // what each added to the token's logit
  LikelyToken lens{};  // top-1 if the model ended after this layer: norm and lm_head of the residual
  std::vector<std::vector<std::pair<std::size_t, float>>> heads{};  // of each head: positions by falling weight
  std::vector<std::pair<std::size_t, float>> experts{};             // those taken, with their weights; none: dense
};

// How a token of a text came about, from the logits after the tokens before it.
struct TokenAccount {
  std::size_t position;  // of the token
  std::int32_t token;
  double logit, probability;
  std::vector<LikelyToken> candidates{};  // the likeliest tokens, in order
  // Direct logit attribution: the logit is a product of the last norm's scale with the sum of all that was added to the
  // residual stream, so that embedding + each layer's shares + rest = logit. `rest` is rounding alone.
  double embedding = 0, rest = 0;
  std::vector<LayerShare> layers{};
};

// Returns the points that account_for() requires.
std::vector<Point> points_of_accounts(const Model& model);

// Accounts for the tokens from position `first` on, which must be over 0, with `most` candidates and positions of each
// head at most. The recording must be of these tokens, or of all but the last. Throws Cancelled.
std::vector<TokenAccount> account_for(const Model& model, const Recording& recording,
                                      std::span<const std::int32_t> tokens, std::size_t first, std::size_t most);

}  // namespace minimind
