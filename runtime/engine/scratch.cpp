#include "runtime/engine/scratch.h"

#include <algorithm>

namespace minimind {

Scratch::Scratch(const Model& model, std::size_t max_tokens, std::size_t max_positions, std::size_t workers)
    : feed_forward(model, max_tokens, workers) {
  const Config& config = model.config;
  const std::size_t d = config.hidden_size, q_cols = config.num_attention_heads * config.head_dim;
  const std::size_t kv_cols = config.num_key_value_heads * config.head_dim;
  x = {max_tokens, d};
  product = {max_tokens, d};
  normed = {max_tokens + workers, d};
  q = {max_tokens, q_cols};
  k = {max_tokens, kv_cols};
  v = {max_tokens, kv_cols};
  attended = {max_tokens, q_cols};
  cos = {max_tokens, config.head_dim / 2};
  sin = {max_tokens, config.head_dim / 2};
  const std::size_t widest = std::max({d, q_cols, widest_feed_forward(model)});
  quantized = {(max_tokens + workers) * slots_per_token(config), widest / kernels::block_cols};
  for (std::size_t w = 0; w < workers; ++w) attention.emplace_back(config, max_positions);
}

}  // namespace minimind
