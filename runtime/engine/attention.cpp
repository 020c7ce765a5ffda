#include "runtime/engine/attention.h"

#include <algorithm>
#include <cmath>

namespace minimind {
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

// scores = q K^T, of all positions.
template <class Element>
void score(const kernels::Table& kernels, const AttentionTile& tile, const KvPanels<const Element>& panels,
           const AttentionScratch& scratch) {
  const std::size_t positions = tile.positions();
  product_with(kernels, panels.keys)({.panels = panels.keys,
                                      .panel_stride = kernels::panel_rows * panels.head_dim,
                                      .rows = positions,
                                      .cols = panels.head_dim,
                                      .first_panel = 0,
                                      .last_panel = kernels::panel_count(positions),
                                      .x = scratch.q.data,
                                      .x_stride = scratch.q.cols,
                                      .tokens = tile.rows(),
                                      .y = scratch.scores.data,
                                      .y_stride = scratch.scores.cols});
}

void score(const kernels::Table& kernels, const AttentionTile& tile, const KvPanels<const std::int8_t>& panels,
           const AttentionScratch& scratch) {
  const std::size_t positions = tile.positions();
  for (std::size_t row = 0; row < tile.rows(); ++row) {
    kernels.quantize(scratch.q.row(row), panels.head_dim, scratch.q_blocks.row(row));
  }
  kernels.matmul_q8_0({.panels = panels.keys,
                       .panel_stride = panels.blocks(),
                       .rows = positions,
                       .cols = panels.blocks() * kernels::block_cols,
                       .first_panel = 0,
                       .last_panel = kernels::panel_count(positions),
                       .x = scratch.q_blocks.data,
                       .x_stride = scratch.q_blocks.cols,
                       .tokens = tile.rows(),
                       .y = scratch.scores.data,
                       .y_stride = scratch.scores.cols});
}

bool is_finite(float number) {
  return std::isfinite(number);
}
bool is_finite(F16 number) {
  constexpr std::uint16_t exponent = 0x7C00;
  return (number.bits & exponent) != exponent;
}

template <class Element>
bool values_are_finite(const KvPanels<const Element>& panels, std::size_t first, std::size_t last) {
  for (std::size_t i = 0; i < panels.head_dim; i += kernels::panel_rows) {
    const bool finite =
        std::all_of(panels.value(first, i), panels.value(last, i), [](Element number) { return is_finite(number); });
    if (!finite) return false;
  }
  return true;
}

// out = scores V for `count` rows of the tile, from `row` on, over the first `positions` positions.
template <class Element>
void weigh_values(const kernels::Table& kernels, const KvPanels<const Element>& panels, const AttentionScratch& scratch,
                  std::size_t row, std::size_t count, std::size_t positions) {
  product_with(kernels, panels.values)({.panels = panels.values,
                                        .panel_stride = panels.values_panel_stride(),
                                        .rows = panels.head_dim,
                                        .cols = positions,
                                        .first_panel = 0,
                                        .last_panel = kernels::panel_count(panels.head_dim),
                                        .x = scratch.scores.row(row),
                                        .x_stride = scratch.scores.cols,
                                        .tokens = count,
                                        .y = scratch.out.row(row),
                                        .y_stride = scratch.out.cols});
}

// out = scores V. Positions that a query does not see yet get a weight of 0, which adds nothing to the sum unless the
// value is infinite or NaN: then each row is multiplied alone, with the positions that it sees.
template <class Element>
void mix(const kernels::Table& kernels, const AttentionTile& tile, const KvPanels<const Element>& panels,
         const AttentionScratch& scratch) {
  const std::size_t positions = tile.positions();
  if (!values_are_finite(panels, tile.seen(0), positions)) {
    for (std::size_t row = 0; row < tile.rows(); ++row) {
      weigh_values(kernels, panels, scratch, row, 1, tile.seen(row));
    }
    return;
  }
  for (std::size_t row = 0; row < tile.rows(); ++row) {
    std::fill(scratch.scores.row(row) + tile.seen(row), scratch.scores.row(row) + positions, 0.0f);
  }
  weigh_values(kernels, panels, scratch, 0, tile.rows(), positions);
}

void mix(const kernels::Table& kernels, const AttentionTile& tile, const KvPanels<const std::int8_t>& panels,
         const AttentionScratch& scratch) {
  const std::size_t position_blocks = kernels::block_count(tile.positions());
  for (std::size_t block = 0; block < panels.blocks(); ++block) {
    for (std::size_t row = 0; row < tile.rows(); ++row) {
      const std::size_t seen = tile.seen(row);
      kernels::ActivationBlock* const weights = scratch.score_blocks.row(row);
      kernels.quantize_scaled(scratch.scores.row(row), panels.value_scales_of(block), seen, weights);
      std::fill(weights + kernels::block_count(seen), weights + position_blocks, kernels::ActivationBlock{});
    }
    kernels.matmul_i8({.panels = panels.values_of(block),
                       .panel_stride = panels.values_panel_stride(),
                       .rows = panels.width(block),
                       .cols = position_blocks * kernels::block_cols,
                       .first_panel = 0,
                       .last_panel = kernels::panel_count(panels.width(block)),
                       .x = scratch.score_blocks.data,
                       .x_stride = scratch.score_blocks.cols,
                       .tokens = tile.rows(),
                       .y = scratch.out.data + block * kernels::block_cols,
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

}  // namespace minimind
