#include "runtime/engine/attention.h"

#include <algorithm>
#include <cmath>

#include "runtime/engine/rope.h"
#include "weights/base/cancel.h"

namespace minimind {
namespace {

void normalize(const AttentionStep& step, const std::vector<float>& norm, float* head) {
  if (norm.empty()) return;
  step.kernels.rms_norm(head, norm.data(), step.config.head_dim, static_cast<float>(step.config.rms_norm_eps), head);
}

void rotate_query(const AttentionStep& step, std::size_t row, std::size_t head, const Worker& worker) {
  const Matrix<float> q{step.scratch.q.row(row) + head * step.config.head_dim, 1, step.config.head_dim};
  normalize(step, step.weights.q_norm, q.data);
  worker.show("self_attn.q_norm", as_const(q), row, head);
  rotate(step.kernels, step.config, step.scratch.cos.row(row), step.scratch.sin.row(row), q.data);
  worker.show("self_attn.q_rope", as_const(q), row, head);
}

void rotate_and_cache_key(const AttentionStep& step, std::size_t row, std::size_t kv_head, const Worker& worker) {
  const Matrix<float> k{step.scratch.k.row(row) + kv_head * step.config.head_dim, 1, step.config.head_dim};
  const float* const v = step.scratch.v.row(row) + kv_head * step.config.head_dim;
  normalize(step, step.weights.k_norm, k.data);
  worker.show("self_attn.k_norm", as_const(k), row, kv_head);
  rotate(step.kernels, step.config, step.scratch.cos.row(row), step.scratch.sin.row(row), k.data);
  worker.show("self_attn.k_rope", as_const(k), row, kv_head);
  const auto [token, position, cache] = step.batch.rows()[row];
  cache->put(step.kernels, step.layer, kv_head, position, k.data, v);
}

// The query heads `heads`, which share a kv head, of a tile of the batch. A row is one query of one head.
struct HeadTile {
  const Batch& batch;
  const Batch::Tile& tile;
  Range heads;

  std::size_t rows() const { return tile.rows.size() * heads.size(); }
  std::size_t batch_row(std::size_t row) const { return tile.rows[row / heads.size()]; }
  std::size_t head(std::size_t row) const { return heads.begin + row % heads.size(); }
  std::size_t seen(std::size_t row) const { return batch.rows()[batch_row(row)].position + 1; }  // positions
};

// Rows of a HeadTile and the cells that they are multiplied with.
struct HeadPart {
  const HeadTile& tile;
  Range rows;
  Range positions;  // of the rows' texts

  HeadPart(const HeadTile& of, const Batch::TilePart& part)
      : tile(of), rows{part.rows.begin * of.heads.size(), part.rows.end * of.heads.size()}, positions(part.positions) {}
  std::size_t seen(std::size_t row) const {
    return std::min(tile.seen(row), positions.end) - positions.begin;  // of the positions here
  }
  std::size_t seen_by_all() const {
    std::size_t least = positions.size();
    for (std::size_t row = rows.begin; row < rows.end; ++row) least = std::min(least, seen(row));
    return least;
  }
  bool continues() const { return positions.begin > 0; }
};

// The columns of a matrix from `first` on, for a product that writes less than whole rows.
Matrix<float> from_column(Matrix<float> matrix, std::size_t first) {
  return {matrix.data + first, matrix.rows, matrix.cols};
}

// scores = q Kᵀ, of the part's positions.
template <class Element>
void score(const kernels::Table& kernels, const HeadPart& part, const KvPanels<Element>& panels,
           const AttentionScratch& scratch) {
  const Panels<Element> keys{panels.keys, kernels::panel_rows * panels.head_dim, part.positions.size(),
                             panels.head_dim};
  matmul(kernels, keys, keys.all(), as_const(scratch.q.rows(part.rows)),
         from_column(scratch.scores.rows(part.rows), part.positions.begin));
}

void score(const kernels::Table& kernels, const HeadPart& part, const KvPanels<std::int8_t>& panels,
           const AttentionScratch& scratch) {
  const Panels<kernels::Q8Block> keys{panels.keys, panels.blocks(), part.positions.size(),
                                      panels.blocks() * kernels::block_cols};
  matmul(kernels, keys, keys.all(), as_const(scratch.q_blocks.rows(part.rows)),
         from_column(scratch.scores.rows(part.rows), part.positions.begin));
}

bool is_finite(float number) {
  return std::isfinite(number);
}
bool is_finite(F16 number) {
  constexpr std::uint16_t exponent = 0x7C00;
  return (number.bits & exponent) != exponent;
}

template <class Element>
bool values_are_finite(const KvPanels<Element>& panels, std::size_t first, std::size_t last) {
  for (std::size_t i = 0; i < panels.head_dim; i += kernels::panel_rows) {
    const bool finite =
        std::all_of(panels.value(first, i), panels.value(last, i), [](Element number) { return is_finite(number); });
    if (!finite) return false;
  }
  return true;
}

// out += scores V for some rows, over the first `count` positions of the part; = if these are the text's first.
template <class Element>
void weigh_values(const kernels::Table& kernels, const HeadPart& part, const KvPanels<Element>& panels,
                  const AttentionScratch& scratch, Range rows, std::size_t count) {
  const Panels<Element> values{panels.values, panels.values_panel_stride(), panels.head_dim, count};
  const Matrix<float> scores = from_column(scratch.scores.rows(rows), part.positions.begin);
  matmul(kernels, values, values.all(), as_const(scores), scratch.out.rows(rows), part.continues());
}

// A query's weights for the positions after its own are 0, which adds nothing to the sum unless a value is infinite or
// NaN. Then each row is multiplied alone, with the positions that it sees.
template <class Element>
void mix(const kernels::Table& kernels, const HeadPart& part, const KvPanels<Element>& panels,
         const AttentionScratch& scratch) {
  const std::size_t count = part.positions.size();
  if (!values_are_finite(panels, part.seen_by_all(), count)) {
    for (std::size_t row = part.rows.begin; row < part.rows.end; ++row) {
      weigh_values(kernels, part, panels, scratch, {row, row + 1}, part.seen(row));
    }
    return;
  }
  for (std::size_t row = part.rows.begin; row < part.rows.end; ++row) {
    float* const weights = scratch.scores.row(row) + part.positions.begin;
    std::fill(weights + part.seen(row), weights + count, 0.0f);
  }
  weigh_values(kernels, part, panels, scratch, part.rows, count);
}

void mix(const kernels::Table& kernels, const HeadPart& part, const KvPanels<std::int8_t>& panels,
         const AttentionScratch& scratch) {
  const std::size_t position_blocks = kernels::block_count(part.positions.size());
  for (std::size_t block = 0; block < panels.blocks(); ++block) {
    for (std::size_t row = part.rows.begin; row < part.rows.end; ++row) {
      const std::size_t seen = part.seen(row);
      const float* const scores = scratch.scores.row(row) + part.positions.begin;
      kernels::ActivationBlock* const weights = scratch.score_blocks.row(row);
      kernels.quantize_scaled(scores, panels.value_scales_of(block), seen, weights);
      std::fill(weights + kernels::block_count(seen), weights + position_blocks, kernels::ActivationBlock{});
    }
    const Panels<kernels::I8Block> values{panels.values_of(block), panels.values_panel_stride(), panels.width(block),
                                          position_blocks * kernels::block_cols};
    matmul(kernels, values, values.all(), as_const(scratch.score_blocks.rows(part.rows)),
           from_column(scratch.out.rows(part.rows), block * kernels::block_cols), part.continues());
  }
}

// out = softmax(q Kᵀ / sqrt(D)) V
void attend_tile(const AttentionStep& step, const HeadTile& tile, std::size_t kv_head, const Worker& worker) {
  if (worker.index() == 0 && Cancellation::requested()) step.cancelled = true;
  if (step.cancelled) return;
  const AttentionScratch& scratch = step.scratch.attention[worker.index()];
  const std::size_t head_dim = step.config.head_dim;
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  const std::span<const Batch::TilePart> parts = step.batch.parts_of(tile.tile);
  const bool quantized = parts.front().cells->shape().type == KvType::q8_0;
  for (std::size_t row = 0; row < tile.rows(); ++row) {
    const float* const q = step.scratch.q.row(tile.batch_row(row)) + tile.head(row) * head_dim;
    std::fill_n(scratch.q.row(row), head_dim, 0.0f);
    step.kernels.add_scaled(scratch.q.row(row), q, scale, head_dim);
    if (quantized) step.kernels.quantize(scratch.q.row(row), head_dim, scratch.q_blocks.row(row));
  }
  const auto for_each_part = [&](const auto& use) {
    for (const Batch::TilePart& part : parts) {
      std::visit([&](const auto& panels) { use(HeadPart(tile, part), panels); },
                 part.cells->panels(step.layer, kv_head));
    }
  };
  const auto show_rows = [&](const char* point) {
    for (std::size_t row = 0; row < tile.rows(); ++row) {
      worker.show(point, {scratch.scores.row(row), 1, tile.seen(row)}, tile.batch_row(row), tile.head(row));
    }
  };
  for_each_part([&](const HeadPart& part, const auto& panels) { score(step.kernels, part, panels, scratch); });
  show_rows("self_attn.scores");
  for (std::size_t row = 0; row < tile.rows(); ++row) step.kernels.softmax(scratch.scores.row(row), tile.seen(row));
  show_rows("self_attn.weights");
  for_each_part([&](const HeadPart& part, const auto& panels) { mix(step.kernels, part, panels, scratch); });
  for (std::size_t row = 0; row < tile.rows(); ++row) {
    std::copy_n(scratch.out.row(row), head_dim,
                step.scratch.attended.row(tile.batch_row(row)) + tile.head(row) * head_dim);
  }
}

}  // namespace

void rotate_and_cache(const AttentionStep& step, Range rows, Range queries, const Worker& worker) {
  worker.begin(Operation::rope);
  const std::size_t heads = step.config.num_attention_heads, kv_heads = step.config.num_key_value_heads;
  const Range q = worker.share(queries.size() * heads), k = worker.share(rows.size() * kv_heads);
  for (std::size_t i = q.begin; i < q.end; ++i) rotate_query(step, queries.begin + i / heads, i % heads, worker);
  for (std::size_t i = k.begin; i < k.end; ++i) {
    rotate_and_cache_key(step, rows.begin + i / kv_heads, i % kv_heads, worker);
  }
}

void attend(const AttentionStep& step, std::size_t first_query, const Worker& worker) {
  worker.begin(Operation::attention);
  const std::span<const Batch::Tile> tiles = step.batch.tiles(first_query);
  if (tiles.empty()) return;
  const std::size_t kv_heads = step.config.num_key_value_heads;
  const std::size_t heads_per_kv = step.config.num_attention_heads / kv_heads;
  // If there are more workers than tiles, heads that share keys are divided among them.
  const std::size_t tasks = tiles.size() * kv_heads;
  const std::size_t parts = std::min(heads_per_kv, (worker.count() + tasks - 1) / tasks);
  // Later tokens see more positions, so workers take tiles in turn, not in ranges.
  for (std::size_t task = worker.index(); task < tasks * parts; task += worker.count()) {
    const std::size_t kv_head = task / parts % kv_heads, first_head = kv_head * heads_per_kv;
    const Range part = share_of(heads_per_kv, task % parts, parts);
    const Range heads{first_head + part.begin, first_head + part.end};
    attend_tile(step, {step.batch, tiles[task / (kv_heads * parts)], heads}, kv_head, worker);
  }
}

void rotate_and_attend(const AttentionStep& step, const Worker& worker) {
  const std::span<const Batch::Tile> tiles = step.batch.tiles(0);
  const std::size_t kv_heads = step.config.num_key_value_heads;
  const std::size_t heads_per_kv = step.config.num_attention_heads / kv_heads;
  for (std::size_t task = worker.index(); task < tiles.size() * kv_heads; task += worker.count()) {
    const Batch::Tile& tile = tiles[task / kv_heads];
    const std::size_t kv_head = task % kv_heads;
    const Range heads{kv_head * heads_per_kv, (kv_head + 1) * heads_per_kv};
    worker.begin(Operation::rope);
    for (const std::size_t row : tile.rows) {
      rotate_and_cache_key(step, row, kv_head, worker);
      for (std::size_t head = heads.begin; head < heads.end; ++head) rotate_query(step, row, head, worker);
    }
    worker.begin(Operation::attention);
    attend_tile(step, {step.batch, tile, heads}, kv_head, worker);
  }
}

}  // namespace minimind
