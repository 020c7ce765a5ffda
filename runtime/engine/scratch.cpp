#include "runtime/engine/scratch.h"

#include <algorithm>

namespace minimind {
namespace {

std::size_t widest_feed_forward(const Model& model) {
  std::size_t widest = 0;
  for (const Layer& layer : model.layers) {
    if (const auto* const ffn = std::get_if<FeedForward>(&layer.mlp)) {
      widest = std::max(widest, ffn->up_proj.rows());
    } else {
      for (const FeedForward& expert : std::get<MixtureOfExperts>(layer.mlp).experts) {
        widest = std::max(widest, expert.up_proj.rows());
      }
    }
  }
  return widest;
}

}  // namespace

std::size_t attention_tile_rows(const Config& config) {
  constexpr std::size_t suitable = 12;  // rows that fill register tiles of the kernels
  const std::size_t heads_per_kv = config.num_attention_heads / config.num_key_value_heads;
  return std::max(heads_per_kv, suitable / heads_per_kv * heads_per_kv);
}

AttentionScratch::AttentionScratch(const Config& config, std::size_t max_positions)
    : q(attention_tile_rows(config), config.head_dim),
      scores(attention_tile_rows(config), max_positions),
      out(attention_tile_rows(config), config.head_dim),
      q_blocks(attention_tile_rows(config), kernels::block_count(config.head_dim)),
      score_blocks(attention_tile_rows(config), kernels::block_count(max_positions)) {}

std::size_t slots_per_token(const Config& config) {
  return config.num_experts > 0 ? config.num_experts_per_tok + config.n_shared_experts : 1;
}

FeedForwardScratch::FeedForwardScratch(const Model& model, std::size_t max_tokens, std::size_t workers) {
  const Config& config = model.config;
  const std::size_t slots = max_tokens * slots_per_token(config), width = widest_feed_forward(model);
  gate = {slots, width};
  up = {slots, width};
  out = {slots, config.hidden_size};
  if (config.num_experts == 0) return;
  gathered = {slots, config.hidden_size};
  router_scores = {max_tokens + workers, config.num_experts};
  routing.assign(workers, {.expert = std::vector<std::int32_t>(slots),
                           .weight = std::vector<float>(slots),
                           .slot = std::vector<std::size_t>(slots),
                           .first_slot = std::vector<std::size_t>(config.num_experts + config.n_shared_experts + 1),
                           .token_of_slot = std::vector<std::size_t>(slots)});
}

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
  const std::size_t of_blocks = to_int8_blocks.row_bytes(widest);  // a model that is stored so may replace this one
  const std::size_t of_model = model.rounding ? model.rounding->row_bytes(widest) : 0;
  constexpr std::size_t line = 64;  // of the caches: rows of q8_r start at one, whatever the worker's first
  const std::size_t bytes = (std::max(of_blocks, of_model) + line - 1) / line * line;
  rounded = {(max_tokens + workers) * slots_per_token(config), bytes};
  for (std::size_t w = 0; w < workers; ++w) attention.emplace_back(config, max_positions);
}

}  // namespace minimind
