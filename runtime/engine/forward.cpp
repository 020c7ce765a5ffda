#include "runtime/engine/forward.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "weights/io/error.h"

namespace minimind {
namespace {

bool takes_quantized_inputs(const FeedForward& network) {
  return takes_quantized(network.up_proj) || (network.gate_proj && takes_quantized(*network.gate_proj));
}

bool takes_quantized_inputs(const MixtureOfExperts& moe) {
  return std::any_of(moe.experts.begin(), moe.experts.end(),
                     [](const FeedForward& expert) { return takes_quantized_inputs(expert); });
}

std::size_t widest(const FeedForward& network) {
  return rows(network.up_proj);
}

std::size_t widest(const MixtureOfExperts& moe) {
  std::size_t width = 0;
  for (const FeedForward& expert : moe.experts) width = std::max(width, widest(expert));
  return width;
}

}  // namespace

void check_tokens(std::span<const std::int32_t> tokens, std::size_t vocab_size) {
  for (const std::int32_t token : tokens) {
    if (token < 0 || static_cast<std::size_t>(token) >= vocab_size) {
      throw Error(fmt::format("token {} is not in the model's vocabulary of {} (ids 0 to {})", token, vocab_size,
                              vocab_size - 1));
    }
  }
}

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
  const std::size_t tile_rows = threads * attention_tile_rows(config);
  widest_input_blocks_ = std::max({config.hidden_size, q_cols, widest_network_}) / kernels::block_cols;
  for (auto* buffer : {&x_, &product_}) buffer->resize(max_tokens * config.hidden_size);
  normed_.resize((max_tokens + threads) * config.hidden_size);
  quantized_.resize((slots + threads) * widest_input_blocks_);
  for (auto* buffer : {&q_, &attended_}) buffer->resize(max_tokens * q_cols);
  for (auto* buffer : {&k_, &v_}) buffer->resize(max_tokens * kv_cols);
  for (auto* buffer : {&cos_, &sin_}) buffer->resize(max_tokens * config.head_dim / 2);
  for (auto* buffer : {&tile_q_, &tile_out_}) buffer->resize(tile_rows * config.head_dim);
  tile_q_blocks_.resize(tile_rows * kernels::block_count(config.head_dim));
  tile_scores_ = std::make_unique_for_overwrite<float[]>(tile_rows * max_positions);
  tile_score_blocks_ =
      std::make_unique_for_overwrite<kernels::ActivationBlock[]>(tile_rows * kernels::block_count(max_positions));
  for (auto* buffer : {&gate_, &up_}) buffer->resize(slots * widest_network_);
  out_.resize(slots * config.hidden_size);
  if (config.num_experts == 0) return;
  gathered_.resize(slots * config.hidden_size);
  router_scores_.resize((max_tokens + threads) * config.num_experts);
  routing_.resize(threads);
  for (Routing& routing : routing_) {
    for (auto* of_slot : {&routing.slot, &routing.token_of_slot}) of_slot->resize(slots);
    routing.expert.resize(slots);
    routing.weight.resize(slots);
    routing.first_slot.resize(config.num_experts + config.n_shared_experts + 1);
  }
}

void Forward::run(std::span<const std::int32_t> tokens, KvCache& cache, Matrix<float> logits) {
  const Config& config = model_.config;
  const std::size_t count = tokens.size();
  assert(count > 0 && count <= max_tokens_ && logits.rows <= count);
  assert(cache.size() + count <= std::min(cache.capacity(), max_positions_));
  check_tokens(tokens, config.vocab_size);
  const Matrix<float> x = rows_of(x_, count, config.hidden_size);
  const AttentionBatch batch = attention_batch(count, count);

  const ProfiledPass pass(profile_, count);
  const auto body = [&](Worker& worker) {
    embed(model_, tokens, x, worker);
    rope_table(model_.rope, cache.size(), batch.cos, batch.sin, worker);
    worker.barrier();

    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      // The last layer leaves keys and values of every token, but needs to go on with those alone whose logits are
      // asked for.
      const std::size_t wanted = i + 1 < model_.layers.size() ? count : logits.rows;
      attention_block(i, cache, count, wanted, worker);
      if (wanted > 0) mlp_block(model_.layers[i], x.row_range(count - wanted, count), worker);
    }

    if (logits.rows == 0) return;
    const WeightMatrix& output = model_.output();
    const Activations normed =
        normalized(model_.norm, as_const(x.row_range(count - logits.rows, count)), takes_quantized(output), worker);
    worker.begin(Operation::lm_head);
    matmul(kernels_, output, normed, logits, worker);
  };
  run_team(threads_, body, pass.threads());
  cache.advance(count);
}

// x += o_proj(attention(norm(x))), for the last `queries` tokens; all of them leave their keys and values.
void Forward::attention_block(std::size_t index, KvCache& cache, std::size_t tokens, std::size_t queries,
                              Worker& worker) {
  const Config& config = model_.config;
  const Layer& layer = model_.layers[index];
  const Attention& attention = layer.attention;
  const Matrix<float> x = rows_of(x_, tokens, config.hidden_size);
  const AttentionBatch batch = attention_batch(tokens, queries);
  const AttentionScratch scratch = attention_scratch(worker);
  const Range asking{tokens - queries, tokens};

  const bool quantize =
      takes_quantized(attention.q_proj) || takes_quantized(attention.k_proj) || takes_quantized(attention.v_proj);
  const Activations normed = normalized(layer.input_layernorm, as_const(x), quantize, worker);
  worker.begin(Operation::qkv);
  if (queries > 0) matmul(kernels_, attention.q_proj, normed.rows(asking), batch.q, worker);
  matmul(kernels_, attention.k_proj, normed, batch.k, worker);
  matmul(kernels_, attention.v_proj, normed, batch.v, worker);
  worker.barrier();
  if (tokens == 1 && queries == 1 && worker.count() <= config.num_key_value_heads) {
    rotate_and_attend(kernels_, config, attention, batch, index, cache, scratch, worker);
  } else {
    rotate_and_cache(kernels_, config, attention, batch, index, cache, worker);
    worker.barrier();
    if (queries == 0) return;
    attend(kernels_, config, batch, index, cache, scratch, worker);
  }
  worker.barrier();
  worker.begin(Operation::o_proj);
  const Activations attended = prepared(as_const(batch.out), takes_quantized(attention.o_proj), 0, worker);
  matmul_add(kernels_, attention.o_proj, attended, rows_of(product_, queries, config.hidden_size),
             x.row_range(asking.begin, asking.end), worker);
  worker.barrier();
}

// x += mlp(norm(x))
void Forward::mlp_block(const Layer& layer, Matrix<float> x, Worker& worker) {
  if (const FeedForward* network = std::get_if<FeedForward>(&layer.mlp)) {
    feed_forward_block(*network, layer.post_attention_layernorm, x, worker);
  } else {
    mixture_block(std::get<MixtureOfExperts>(layer.mlp), layer.post_attention_layernorm, x, worker);
  }
  worker.barrier();
}

// x += down(act(gate normed) * up normed)
void Forward::feed_forward_block(const FeedForward& network, const std::vector<float>& norm, Matrix<float> x,
                                 Worker& worker) {
  const FeedForwardBatch batch = feed_forward_batch();
  const Activations normed = normalized(norm, as_const(x), takes_quantized_inputs(network), worker);
  feed_forward_in(kernels_, model_.config.hidden_act, network, normed, 0, batch, worker);
  worker.barrier();
  worker.begin(Operation::down);
  const Matrix<float> hidden = hidden_of(network, 0, x.rows, batch);
  feed_forward_out(kernels_, network, prepared(as_const(hidden), takes_quantized(network.down_proj), 0, worker), 0,
                   batch, worker);
  const Range columns = columns_of(x.cols, worker);
  for (std::size_t t = 0; t < x.rows; ++t) {
    kernels_.add(x.row(t) + columns.begin, batch.out.row(t) + columns.begin, columns.end - columns.begin);
  }
}

// x += sum over the chosen experts of weight * expert(normed), + the shared experts(normed). Tokens are gathered by
// expert, so that each expert is one batch.
void Forward::mixture_block(const MixtureOfExperts& moe, const std::vector<float>& norm, Matrix<float> x,
                            Worker& worker) {
  const FeedForwardBatch batch = feed_forward_batch();
  const bool alone = x.rows == 1;
  const Activations normed = normalized(norm, as_const(x), alone && takes_quantized_inputs(moe), worker);
  const Routing& routing = routed(moe, normed.exact, worker);
  const Activations by_slot = alone ? normed : gathered(moe, routing, normed.exact, worker);
  const auto slots_of = [&](std::size_t e) { return Range{routing.first_slot[e], routing.first_slot[e + 1]}; };
  for (std::size_t e = 0; e < moe.experts.size(); ++e) {
    const Range slots = slots_of(e);
    if (slots.begin == slots.end) continue;
    feed_forward_in(kernels_, model_.config.hidden_act, moe.experts[e], alone ? by_slot : by_slot.rows(slots),
                    slots.begin, batch, worker);
  }
  worker.barrier();
  for (std::size_t e = 0; e < moe.experts.size(); ++e) {
    const Range slots = slots_of(e);
    if (slots.begin == slots.end) continue;
    const FeedForward& expert = moe.experts[e];
    worker.begin(Operation::down);
    const Matrix<float> hidden = hidden_of(expert, slots.begin, slots.end - slots.begin, batch);
    const Activations activations = prepared(as_const(hidden), takes_quantized(expert.down_proj), slots.begin, worker);
    feed_forward_out(kernels_, expert, activations, slots.begin, batch, worker);
  }
  // Every expert's columns of out are split alike, so each worker adds up what it wrote itself.
  const Range columns = columns_of(x.cols, worker);
  for (std::size_t i = 0; i < x.rows * slots_per_token_; ++i) {
    kernels_.add_scaled(x.row(i / slots_per_token_) + columns.begin, batch.out.row(routing.slot[i]) + columns.begin,
                        routing.weight[i], columns.end - columns.begin);
  }
}

// Which of the tokens go through which expert. Each worker finds out for itself about a single token.
const Routing& Forward::routed(const MixtureOfExperts& moe, Matrix<const float> normed, Worker& worker) {
  worker.begin(Operation::router);
  const bool alone = normed.rows == 1;
  const Matrix<float> scores = rows_of(router_scores_, max_tokens_ + threads_, moe.routed_experts);
  if (alone) {
    Routing& routing = routing_[worker.index()];
    const std::size_t own = max_tokens_ + worker.index();
    route(kernels_, moe, normed, {0, 1}, scores.row_range(own, own + 1), routing);
    assign_slots(moe, 1, routing);
    return routing;
  }
  Routing& routing = routing_.front();
  route(kernels_, moe, normed, worker.share(normed.rows), scores, routing);
  worker.barrier();
  if (worker.index() == 0) assign_slots(moe, normed.rows, routing);
  worker.barrier();
  return routing;
}

// The rows of normed in the order of their slots.
Activations Forward::gathered(const MixtureOfExperts& moe, const Routing& routing, Matrix<const float> normed,
                              Worker& worker) {
  const Matrix<float> rows = rows_of(gathered_, normed.rows * slots_per_token_, normed.cols);
  const Range slots = worker.share(rows.rows);
  for (std::size_t slot = slots.begin; slot < slots.end; ++slot) {
    std::memcpy(rows.row(slot), normed.row(routing.token_of_slot[slot]), normed.cols * sizeof(float));
  }
  return prepared(as_const(rows), takes_quantized_inputs(moe), 0, worker);
}

// norm(x), to be multiplied. A single row every worker computes for itself, which is quicker than to wait for another.
Activations Forward::normalized(const std::vector<float>& weight, Matrix<const float> x, bool quantize,
                                Worker& worker) {
  worker.begin(Operation::rms_norm);
  const bool alone = x.rows == 1;
  const std::size_t first = alone ? max_tokens_ + worker.index() : 0;
  const Matrix<float> normed = rows_of(normed_, max_tokens_ + threads_, x.cols).row_range(first, first + x.rows);
  const Range share = alone ? Range{0, 1} : worker.share(x.rows);
  const float eps = static_cast<float>(model_.config.rms_norm_eps);
  for (std::size_t t = share.begin; t < share.end; ++t) {
    kernels_.rms_norm(x.row(t), weight.data(), x.cols, eps, normed.row(t));
  }
  return prepared(as_const(normed), quantize, 0, worker);
}

// x, of which this worker has written its share of the rows, or a single one alone, to be multiplied: rounded to 8
// bits, if so wanted, into the rows from `first` on. When it returns, the rows of every worker are there.
Activations Forward::prepared(Matrix<const float> x, bool quantize, std::size_t first, Worker& worker) {
  const bool alone = x.rows == 1;
  Activations activations{.exact = x, .quantized = {}};
  if (quantize) {
    const std::size_t row = alone ? max_tokens_ * slots_per_token_ + worker.index() : first;
    const Matrix<kernels::ActivationBlock> blocks{&quantized_[row * widest_input_blocks_], x.rows,
                                                  x.cols / kernels::block_cols};
    const Range share = alone ? Range{0, 1} : worker.share(x.rows);
    for (std::size_t t = share.begin; t < share.end; ++t) kernels_.quantize(x.row(t), x.cols, blocks.row(t));
    activations.quantized = as_const(blocks);
  }
  if (!alone) worker.barrier();
  return activations;
}

AttentionBatch Forward::attention_batch(std::size_t tokens, std::size_t queries) {
  const Config& config = model_.config;
  const std::size_t q_cols = config.num_attention_heads * config.head_dim;
  const std::size_t kv_cols = config.num_key_value_heads * config.head_dim;
  return {.q = rows_of(q_, queries, q_cols),
          .k = rows_of(k_, tokens, kv_cols),
          .v = rows_of(v_, tokens, kv_cols),
          .cos = rows_of(cos_, tokens, config.head_dim / 2),
          .sin = rows_of(sin_, tokens, config.head_dim / 2),
          .out = rows_of(attended_, queries, q_cols)};
}

AttentionScratch Forward::attention_scratch(const Worker& worker) {
  const std::size_t head_dim = model_.config.head_dim, rows = attention_tile_rows(model_.config);
  const auto own = [&]<class Number>(Number* storage, std::size_t cols) {
    return Matrix<Number>{storage + worker.index() * rows * cols, rows, cols};
  };
  return {.q = own(tile_q_.data(), head_dim),
          .scores = own(tile_scores_.get(), max_positions_),
          .out = own(tile_out_.data(), head_dim),
          .q_blocks = own(tile_q_blocks_.data(), kernels::block_count(head_dim)),
          .score_blocks = own(tile_score_blocks_.get(), kernels::block_count(max_positions_))};
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
