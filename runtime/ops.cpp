#include "runtime/ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace minimind {
namespace {

Range panels_of(std::size_t rows, const Worker& worker) {
  return worker.share(kernels::panel_count(rows));
}

kernels::Activation to_activation(HiddenAct act) {
  switch (act) {
    case HiddenAct::silu:
      return kernels::Activation::silu;
    case HiddenAct::sigmoid:
      return kernels::Activation::sigmoid;
    case HiddenAct::relu:
      return kernels::Activation::relu;
    case HiddenAct::gelu:
      return kernels::Activation::gelu;
    case HiddenAct::gelu_tanh:
      return kernels::Activation::gelu_tanh;
    case HiddenAct::linear:
      return kernels::Activation::linear;
  }
  return kernels::Activation::linear;
}

void add_bias(const kernels::Table& kernels, const std::vector<float>& bias, Range columns, Matrix<float> y) {
  if (bias.empty()) return;
  for (std::size_t t = 0; t < y.rows; ++t) {
    kernels.add(y.row(t) + columns.begin, bias.data() + columns.begin, columns.end - columns.begin);
  }
}

// The k largest of scores, largest first, the lower index first among equals, into expert and weight.
void choose_experts(const float* scores, std::size_t experts, std::size_t k, bool normalize, std::int32_t* expert,
                    float* weight) {
  for (std::size_t rank = 0; rank < k; ++rank) {
    std::size_t best = experts;
    for (std::size_t e = 0; e < experts; ++e) {
      const bool taken = std::find(expert, expert + rank, static_cast<std::int32_t>(e)) != expert + rank;
      if (!taken && (best == experts || scores[e] > scores[best])) best = e;
    }
    expert[rank] = static_cast<std::int32_t>(best);
    weight[rank] = scores[best];
  }
  if (!normalize) return;
  float sum = 1e-20f;
  for (std::size_t rank = 0; rank < k; ++rank) sum += weight[rank];
  for (std::size_t rank = 0; rank < k; ++rank) weight[rank] /= sum;
}

}  // namespace

Range columns_of(std::size_t rows, const Worker& worker) {
  const Range panels = panels_of(rows, worker);
  return {std::min(panels.begin * kernels::panel_rows, rows), std::min(panels.end * kernels::panel_rows, rows)};
}

void embed(const Model& model, std::span<const std::int32_t> tokens, Matrix<float> x, const Worker& worker) {
  worker.begin(Operation::embed);
  const Range share = worker.share(tokens.size());
  for (std::size_t t = share.begin; t < share.end; ++t) {
    read_row(model.embed_tokens, static_cast<std::size_t>(tokens[t]), x.row(t));
  }
}

void rope_table(const Rope& rope, std::size_t first_position, Matrix<float> cos, Matrix<float> sin,
                const Worker& worker) {
  const Range share = worker.share(cos.rows);
  for (std::size_t t = share.begin; t < share.end; ++t) rope_angles(rope, first_position + t, cos.row(t), sin.row(t));
}

void matmul(const kernels::Table& kernels, const WeightMatrix& weight, const Activations& x, Matrix<float> y,
            const Worker& worker) {
  multiply(kernels, weight, panels_of(y.cols, worker), x, y);
}

void matmul_add(const kernels::Table& kernels, const WeightMatrix& weight, const Activations& x, Matrix<float> product,
                Matrix<float> residual, const Worker& worker) {
  matmul(kernels, weight, x, product, worker);
  const Range columns = columns_of(product.cols, worker);
  for (std::size_t t = 0; t < residual.rows; ++t) {
    kernels.add(residual.row(t) + columns.begin, product.row(t) + columns.begin, columns.end - columns.begin);
  }
}

namespace {

struct HeadRotation {
  const kernels::Table& kernels;
  const Config& config;
  const Attention& attention;
  const AttentionBatch& batch;
  std::size_t layer;
  KvCache& cache;

  void operator()(float* head, const std::vector<float>& norm, std::size_t t) const {
    if (!norm.empty()) {
      kernels.rms_norm(head, norm.data(), config.head_dim, static_cast<float>(config.rms_norm_eps), head);
    }
    const auto rotate =
        rope_layout(config.family) == RopeLayout::halves ? kernels.rope_halves : kernels.rope_adjacent_pairs;
    rotate(head, batch.cos.row(t), batch.sin.row(t), config.head_dim);
  }

  void rotate_query(std::size_t query, std::size_t head) const {
    const std::size_t t = batch.k.rows - batch.q.rows + query;
    (*this)(batch.q.row(query) + head * config.head_dim, attention.q_norm, t);
  }

  void rotate_and_store_key(std::size_t t, std::size_t kv_head) const {
    float* const k = batch.k.row(t) + kv_head * config.head_dim;
    (*this)(k, attention.k_norm, t);
    cache.put(kernels, layer, kv_head, cache.size() + t, k, batch.v.row(t) + kv_head * config.head_dim);
  }
};

// The query heads [first_head, last_head), which share a kv head, for the queries [first, last) of the batch, of which
// query 0 is at `first_position`. A row is one query of one head.
struct AttentionTile {
  std::size_t first_head, last_head;
  std::size_t first, last;
  std::size_t first_position;

  std::size_t heads() const { return last_head - first_head; }
  std::size_t rows() const { return (last - first) * heads(); }
  std::size_t query(std::size_t row) const { return first + row / heads(); }
  std::size_t head(std::size_t row) const { return first_head + row % heads(); }
  std::size_t seen(std::size_t row) const { return first_position + query(row) + 1; }  // positions
  std::size_t positions() const { return first_position + last; }                      // that the last query sees
};

auto product_with(const kernels::Table& kernels, const float*) {
  return kernels.matmul_f32;
}
auto product_with(const kernels::Table& kernels, const F16*) {
  return kernels.matmul_f16;
}
auto product_with(const kernels::Table& kernels, const std::int8_t*) {
  return kernels.matmul_i8;
}

// scores = q K^T, of all positions.
template <class Element>
void score(const kernels::Table& kernels, const AttentionTile& tile, const KvPanels<const Element>& panels,
           const AttentionScratch& scratch) {
  const std::size_t positions = tile.positions();
  const Matrix<float> products = KvPanels<Element>::has_scales ? scratch.block_scores : scratch.scores;
  for (std::size_t block = 0; block < panels.blocks(); ++block) {
    product_with(kernels, panels.keys)({.panels = panels.keys_of(block),
                                        .panel_stride = panels.keys_panel_stride(block),
                                        .rows = positions,
                                        .cols = panels.width(block),
                                        .first_panel = 0,
                                        .last_panel = kernels::panel_count(positions),
                                        .x = scratch.q.data + block * panels.block_cols(),
                                        .x_stride = scratch.q.cols,
                                        .tokens = tile.rows(),
                                        .y = products.data,
                                        .y_stride = products.cols});
    if constexpr (KvPanels<Element>::has_scales) {
      for (std::size_t row = 0; row < tile.rows(); ++row) {
        if (block == 0) std::fill_n(scratch.scores.row(row), positions, 0.0f);
        kernels.add_product(scratch.scores.row(row), products.row(row), panels.key_scales_of(block), positions);
      }
    }
  }
}

// out = scores V. Positions that a query does not see yet get a weight of 0, which adds nothing.
template <class Element>
void mix(const kernels::Table& kernels, const AttentionTile& tile, const KvPanels<const Element>& panels,
         const AttentionScratch& scratch) {
  const std::size_t positions = tile.positions();
  const Matrix<float> weights = KvPanels<Element>::has_scales ? scratch.block_scores : scratch.scores;
  for (std::size_t block = 0; block < panels.blocks(); ++block) {
    for (std::size_t row = 0; row < tile.rows(); ++row) {
      const std::size_t seen = tile.seen(row);
      if constexpr (KvPanels<Element>::has_scales) {
        std::fill_n(weights.row(row), seen, 0.0f);
        kernels.add_product(weights.row(row), scratch.scores.row(row), panels.value_scales_of(block), seen);
      }
      std::fill_n(weights.row(row) + seen, positions - seen, 0.0f);
    }
    product_with(kernels, panels.values)({.panels = panels.values_of(block),
                                          .panel_stride = panels.values_panel_stride(),
                                          .rows = panels.width(block),
                                          .cols = positions,
                                          .first_panel = 0,
                                          .last_panel = kernels::panel_count(panels.width(block)),
                                          .x = weights.data,
                                          .x_stride = weights.cols,
                                          .tokens = tile.rows(),
                                          .y = scratch.out.data + block * panels.block_cols(),
                                          .y_stride = scratch.out.cols});
  }
}

// softmax(scale q K^T) V
void attend_tile(const kernels::Table& kernels, const AttentionBatch& batch, const AttentionTile& tile,
                 const KvCache::Panels& panels, const AttentionScratch& scratch) {
  const std::size_t head_dim = scratch.q.cols;
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  for (std::size_t row = 0; row < tile.rows(); ++row) {
    const float* const q = batch.q.row(tile.query(row)) + tile.head(row) * head_dim;
    for (std::size_t i = 0; i < head_dim; ++i) scratch.q.row(row)[i] = scale * q[i];
  }
  std::visit([&](const auto& of_type) { score(kernels, tile, of_type, scratch); }, panels);
  for (std::size_t row = 0; row < tile.rows(); ++row) kernels.softmax(scratch.scores.row(row), tile.seen(row));
  std::visit([&](const auto& of_type) { mix(kernels, tile, of_type, scratch); }, panels);
  for (std::size_t row = 0; row < tile.rows(); ++row) {
    std::copy_n(scratch.out.row(row), head_dim, batch.out.row(tile.query(row)) + tile.head(row) * head_dim);
  }
}

}  // namespace

std::size_t attention_tile_rows(const Config& config) {
  constexpr std::size_t suitable = 12;  // what the kernels multiply in one register tile, or several
  const std::size_t heads_per_kv = config.num_attention_heads / config.num_key_value_heads;
  return std::max(heads_per_kv, suitable / heads_per_kv * heads_per_kv);
}

void rotate_and_cache(const kernels::Table& kernels, const Config& config, const Attention& attention,
                      const AttentionBatch& batch, std::size_t layer, KvCache& cache, const Worker& worker) {
  worker.begin(Operation::rope);
  const HeadRotation rotation{kernels, config, attention, batch, layer, cache};
  const std::size_t heads = config.num_attention_heads, kv_heads = config.num_key_value_heads;
  const Range queries = worker.share(batch.q.rows * heads);
  for (std::size_t i = queries.begin; i < queries.end; ++i) rotation.rotate_query(i / heads, i % heads);
  const Range keys = worker.share(batch.k.rows * kv_heads);
  for (std::size_t i = keys.begin; i < keys.end; ++i) rotation.rotate_and_store_key(i / kv_heads, i % kv_heads);
}

void attend(const kernels::Table& kernels, const Config& config, const AttentionBatch& batch, std::size_t layer,
            const KvCache& cache, const AttentionScratch& scratch, const Worker& worker) {
  worker.begin(Operation::attention);
  const std::size_t kv_heads = config.num_key_value_heads, heads_per_kv = config.num_attention_heads / kv_heads;
  const std::size_t queries = batch.q.rows, tile_queries = attention_tile_rows(config) / heads_per_kv;
  const std::size_t tiles = (queries + tile_queries - 1) / tile_queries;
  // With more workers than tiles, heads that share keys are parted.
  const std::size_t parts = std::min(heads_per_kv, (worker.count() + kv_heads * tiles - 1) / (kv_heads * tiles));
  const std::size_t first_position = cache.size() + batch.k.rows - queries;
  // Later tokens see more positions, so the tiles are dealt out in turn rather than in ranges.
  for (std::size_t task = worker.index(); task < tiles * kv_heads * parts; task += worker.count()) {
    const std::size_t tile = task / (kv_heads * parts), kv_head = task / parts % kv_heads;
    const Range heads = share_of(heads_per_kv, task % parts, parts);
    attend_tile(kernels, batch,
                {.first_head = kv_head * heads_per_kv + heads.begin,
                 .last_head = kv_head * heads_per_kv + heads.end,
                 .first = tile * tile_queries,
                 .last = std::min((tile + 1) * tile_queries, queries),
                 .first_position = first_position},
                cache.panels(layer, kv_head), scratch);
  }
}

void rotate_and_attend(const kernels::Table& kernels, const Config& config, const Attention& attention,
                       const AttentionBatch& batch, std::size_t layer, KvCache& cache, const AttentionScratch& scratch,
                       const Worker& worker) {
  const HeadRotation rotation{kernels, config, attention, batch, layer, cache};
  const std::size_t heads_per_kv = config.num_attention_heads / config.num_key_value_heads;
  for (std::size_t kv_head = worker.index(); kv_head < config.num_key_value_heads; kv_head += worker.count()) {
    const std::size_t first_head = kv_head * heads_per_kv, last_head = first_head + heads_per_kv;
    worker.begin(Operation::rope);
    rotation.rotate_and_store_key(0, kv_head);
    for (std::size_t head = first_head; head < last_head; ++head) rotation.rotate_query(0, head);
    worker.begin(Operation::attention);
    attend_tile(kernels, batch, {first_head, last_head, 0, 1, cache.size()}, cache.panels(layer, kv_head), scratch);
  }
}

void feed_forward_in(const kernels::Table& kernels, HiddenAct act, const FeedForward& network, const Activations& x,
                     std::size_t first, const FeedForwardBatch& batch, const Worker& worker) {
  worker.begin(Operation::gate_up);
  const std::size_t width = rows(network.up_proj), count = x.exact.rows;
  const Range columns = columns_of(width, worker);
  const Matrix<float> gate{batch.gate.row(first), count, width};
  const Matrix<float> up{batch.up.row(first), count, width};
  if (network.gate_proj) {
    matmul(kernels, *network.gate_proj, x, gate, worker);
    add_bias(kernels, network.gate_bias, columns, gate);
  }
  matmul(kernels, network.up_proj, x, up, worker);
  add_bias(kernels, network.up_bias, columns, up);
  worker.begin(Operation::activation);
  for (std::size_t t = 0; t < count; ++t) {
    float* activated = (network.gate_proj ? gate : up).row(t) + columns.begin;
    const float* factor = network.gate_proj ? up.row(t) + columns.begin : nullptr;
    kernels.activate(to_activation(act), activated, factor, columns.end - columns.begin);
  }
}

Matrix<float> hidden_of(const FeedForward& network, std::size_t first, std::size_t count,
                        const FeedForwardBatch& batch) {
  return {(network.gate_proj ? batch.gate : batch.up).row(first), count, rows(network.up_proj)};
}

void feed_forward_out(const kernels::Table& kernels, const FeedForward& network, const Activations& hidden,
                      std::size_t first, const FeedForwardBatch& batch, const Worker& worker) {
  worker.begin(Operation::down);
  const Matrix<float> out = batch.out.row_range(first, first + hidden.exact.rows);
  matmul(kernels, network.down_proj, hidden, out, worker);
  add_bias(kernels, network.down_bias, columns_of(out.cols, worker), out);
}

void route(const kernels::Table& kernels, const MixtureOfExperts& moe, Matrix<const float> x, Range share,
           Matrix<float> scores, Routing& routing) {
  if (share.begin == share.end) return;
  const std::size_t shared = moe.experts.size() - moe.routed_experts;
  const std::size_t per_token = moe.experts_per_token + shared;
  kernels.matmul_f32({.panels = moe.router.data(),
                      .panel_stride = moe.router.elements_per_panel(),
                      .rows = moe.routed_experts,
                      .cols = x.cols,
                      .first_panel = 0,
                      .last_panel = moe.router.panels(),
                      .x = x.row(share.begin),
                      .x_stride = x.cols,
                      .tokens = share.end - share.begin,
                      .y = scores.row(share.begin),
                      .y_stride = scores.cols});
  for (std::size_t t = share.begin; t < share.end; ++t) {
    kernels.softmax(scores.row(t), moe.routed_experts);
    std::int32_t* expert = &routing.expert[t * per_token];
    float* weight = &routing.weight[t * per_token];
    choose_experts(scores.row(t), moe.routed_experts, moe.experts_per_token, moe.normalize, expert, weight);
    for (std::size_t i = 0; i < shared; ++i) {
      expert[moe.experts_per_token + i] = static_cast<std::int32_t>(moe.routed_experts + i);
      weight[moe.experts_per_token + i] = 1;
    }
  }
}

void assign_slots(const MixtureOfExperts& moe, std::size_t tokens, Routing& routing) {
  const std::size_t experts = moe.experts.size();
  const std::size_t per_token = moe.experts_per_token + experts - moe.routed_experts;
  std::fill_n(routing.first_slot.begin(), experts + 1, std::size_t{0});
  for (std::size_t i = 0; i < tokens * per_token; ++i)
    ++routing.first_slot[static_cast<std::size_t>(routing.expert[i]) + 1];
  for (std::size_t e = 0; e < experts; ++e) routing.first_slot[e + 1] += routing.first_slot[e];
  // Counting sort: first_slot[e] runs up to first_slot[e + 1] while expert e's slots are dealt, and is put back below.
  for (std::size_t i = 0; i < tokens * per_token; ++i) {
    const std::size_t slot = routing.first_slot[static_cast<std::size_t>(routing.expert[i])]++;
    routing.slot[i] = slot;
    routing.token_of_slot[slot] = i / per_token;
  }
  for (std::size_t e = experts; e > 0; --e) routing.first_slot[e] = routing.first_slot[e - 1];
  routing.first_slot[0] = 0;
}

}  // namespace minimind
