#include "runtime/forward.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace minimind {
namespace {

std::size_t widest(const FeedForward& network) {
  return rows(network.up_proj);
}

std::size_t widest(const MixtureOfExperts& moe) {
  std::size_t width = 0;
  for (const FeedForward& expert : moe.experts) width = std::max(width, widest(expert));
  return width;
}

}  // namespace

Forward::Forward(const Model& model, const kernels::Table& kernels, std::size_t threads, std::size_t max_tokens,
                 std::size_t max_positions)
    : model_(model),
      kernels_(kernels),
      threads_(threads),
      max_tokens_(max_tokens),
      max_positions_(max_positions),
      widest_network_(0),
      slots_per_token_(1) {
  const Config& config = model.config;
  for (const Layer& layer : model.layers) {
    widest_network_ = std::max(widest_network_, std::visit([](const auto& mlp) { return widest(mlp); }, layer.mlp));
  }
  if (config.num_experts > 0) slots_per_token_ = config.num_experts_per_tok + config.n_shared_experts;
  const std::size_t slots = max_tokens * slots_per_token_;
  const std::size_t q_cols = config.num_attention_heads * config.head_dim;
  const std::size_t kv_cols = config.num_key_value_heads * config.head_dim;
  for (auto* buffer : {&x_, &normed_, &product_}) buffer->resize(max_tokens * config.hidden_size);
  for (auto* buffer : {&q_, &attended_}) buffer->resize(max_tokens * q_cols);
  for (auto* buffer : {&k_, &v_}) buffer->resize(max_tokens * kv_cols);
  for (auto* buffer : {&cos_, &sin_}) buffer->resize(max_tokens * config.head_dim / 2);
  for (auto* buffer : {&gate_, &up_}) buffer->resize(slots * widest_network_);
  scores_.resize(threads * max_positions);
  out_.resize(slots * config.hidden_size);
  if (config.num_experts == 0) return;
  gathered_.resize(slots * config.hidden_size);
  router_scores_.resize(max_tokens * config.num_experts);
  routing_.expert.resize(slots);
  routing_.weight.resize(slots);
  routing_.slot.resize(slots);
  routing_.token_of_slot.resize(slots);
  routing_.first_slot.resize(config.num_experts + config.n_shared_experts + 1);
}

void Forward::run(std::span<const std::int32_t> tokens, KvCache& cache, Matrix<float> logits) {
  const Config& config = model_.config;
  const std::size_t count = tokens.size();
  assert(count > 0 && count <= max_tokens_ && logits.rows <= count);
  assert(cache.size() + count <= std::min(cache.capacity(), max_positions_));
  const Matrix<float> x = rows_of(x_, count, config.hidden_size);
  const AttentionBatch batch = attention_batch(count);

  const ProfiledPass pass(profile_, count);
  const auto body = [&](Worker& worker) {
    embed(model_, tokens, x, worker);
    rope_table(model_.rope, cache.size(), batch.cos, batch.sin, worker);
    worker.wait();

    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      attention_block(i, cache, count, worker);
      const Layer& layer = model_.layers[i];
      rms_norm(kernels_, layer.post_attention_layernorm, config.rms_norm_eps, as_const(x),
               rows_of(normed_, count, config.hidden_size), worker);
      worker.wait();
      if (const FeedForward* network = std::get_if<FeedForward>(&layer.mlp)) {
        feed_forward_block(*network, count, worker);
      } else {
        mixture_block(std::get<MixtureOfExperts>(layer.mlp), count, worker);
      }
      worker.wait();
    }

    const Matrix<float> last = x.row_range(count - logits.rows, count);
    const Matrix<float> normed = rows_of(normed_, logits.rows, config.hidden_size);
    rms_norm(kernels_, model_.norm, config.rms_norm_eps, as_const(last), normed, worker);
    worker.wait();
    worker.begin(Operation::lm_head);
    matmul(kernels_, model_.output(), as_const(normed), logits, worker);
  };
  run_team(threads_, body, pass.threads());
  cache.advance(count);
}

// x += o_proj(attention(norm(x)))
void Forward::attention_block(std::size_t index, KvCache& cache, std::size_t tokens, Worker& worker) {
  const Config& config = model_.config;
  const Layer& layer = model_.layers[index];
  const Attention& attention = layer.attention;
  const Matrix<float> x = rows_of(x_, tokens, config.hidden_size);
  const Matrix<float> normed = rows_of(normed_, tokens, config.hidden_size);
  const AttentionBatch batch = attention_batch(tokens);

  rms_norm(kernels_, layer.input_layernorm, config.rms_norm_eps, as_const(x), normed, worker);
  worker.wait();
  worker.begin(Operation::qkv);
  matmul(kernels_, attention.q_proj, as_const(normed), batch.q, worker);
  matmul(kernels_, attention.k_proj, as_const(normed), batch.k, worker);
  matmul(kernels_, attention.v_proj, as_const(normed), batch.v, worker);
  worker.wait();
  rotate_and_cache(kernels_, config, attention, batch, index, cache, worker);
  worker.wait();
  attend(kernels_, config, batch, index, cache, worker);
  worker.wait();
  worker.begin(Operation::o_proj);
  matmul_add(kernels_, attention.o_proj, as_const(batch.out), rows_of(product_, tokens, config.hidden_size), x, worker);
  worker.wait();
}

// x += down(act(gate normed) * up normed)
void Forward::feed_forward_block(const FeedForward& network, std::size_t tokens, Worker& worker) {
  const std::size_t d = model_.config.hidden_size;
  const Matrix<float> x = rows_of(x_, tokens, d);
  const FeedForwardBatch batch = feed_forward_batch();
  feed_forward_in(kernels_, model_.config.hidden_act, network, as_const(rows_of(normed_, tokens, d)), 0, batch, worker);
  worker.wait();
  feed_forward_out(kernels_, network, 0, tokens, batch, worker);
  const Range columns = columns_of(d, worker);
  for (std::size_t t = 0; t < tokens; ++t) {
    kernels_.add(x.row(t) + columns.begin, batch.out.row(t) + columns.begin, columns.end - columns.begin);
  }
}

// x += sum over the chosen experts of weight * expert(normed), + the shared experts(normed). Tokens are gathered by
// expert, so that each expert is one batch.
void Forward::mixture_block(const MixtureOfExperts& moe, std::size_t tokens, Worker& worker) {
  const std::size_t d = model_.config.hidden_size;
  const Matrix<float> x = rows_of(x_, tokens, d), normed = rows_of(normed_, tokens, d);
  const FeedForwardBatch batch = feed_forward_batch();
  const Matrix<float> gathered = rows_of(gathered_, tokens * slots_per_token_, d);

  route(kernels_, moe, as_const(normed), rows_of(router_scores_, tokens, moe.routed_experts), routing_, worker);
  worker.wait();
  if (worker.index() == 0) assign_slots(moe, tokens, routing_);
  worker.wait();
  const Range slots = worker.share(gathered.rows);
  for (std::size_t slot = slots.begin; slot < slots.end; ++slot) {
    std::memcpy(gathered.row(slot), normed.row(routing_.token_of_slot[slot]), d * sizeof(float));
  }
  worker.wait();
  for (std::size_t e = 0; e < moe.experts.size(); ++e) {
    const std::size_t first = routing_.first_slot[e], last = routing_.first_slot[e + 1];
    if (first == last) continue;
    feed_forward_in(kernels_, model_.config.hidden_act, moe.experts[e], as_const(gathered.row_range(first, last)),
                    first, batch, worker);
  }
  worker.wait();
  for (std::size_t e = 0; e < moe.experts.size(); ++e) {
    const std::size_t first = routing_.first_slot[e], last = routing_.first_slot[e + 1];
    if (first < last) feed_forward_out(kernels_, moe.experts[e], first, last - first, batch, worker);
  }
  // Every expert's columns of out are split alike, so each worker adds up what it wrote itself.
  const Range columns = columns_of(d, worker);
  for (std::size_t i = 0; i < tokens * slots_per_token_; ++i) {
    kernels_.add_scaled(x.row(i / slots_per_token_) + columns.begin, batch.out.row(routing_.slot[i]) + columns.begin,
                        routing_.weight[i], columns.end - columns.begin);
  }
}

AttentionBatch Forward::attention_batch(std::size_t tokens) {
  const Config& config = model_.config;
  const std::size_t q_cols = config.num_attention_heads * config.head_dim;
  const std::size_t kv_cols = config.num_key_value_heads * config.head_dim;
  return {.q = rows_of(q_, tokens, q_cols),
          .k = rows_of(k_, tokens, kv_cols),
          .v = rows_of(v_, tokens, kv_cols),
          .cos = rows_of(cos_, tokens, config.head_dim / 2),
          .sin = rows_of(sin_, tokens, config.head_dim / 2),
          .out = rows_of(attended_, tokens, q_cols),
          .scores = rows_of(scores_, threads_, max_positions_)};
}

FeedForwardBatch Forward::feed_forward_batch() {
  const std::size_t slots = max_tokens_ * slots_per_token_;
  return {.gate = rows_of(gate_, slots, widest_network_),
          .up = rows_of(up_, slots, widest_network_),
          .out = rows_of(out_, slots, model_.config.hidden_size)};
}

Matrix<float> Forward::rows_of(std::vector<float>& storage, std::size_t rows, std::size_t cols) const {
  assert(rows * cols <= storage.size());
  return {storage.data(), rows, cols};
}

}  // namespace minimind
