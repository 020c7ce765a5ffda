#pragma once

#include <atomic>
#include <cstddef>

#include "runtime/engine/batch.h"
#include "runtime/engine/matrix.h"
#include "runtime/engine/model.h"
#include "runtime/engine/scratch.h"
#include "runtime/engine/thread_team.h"
#include "runtime/kernels/kernels.h"

namespace minimind {

// Attention of one layer, without its products with weights. Each function is called by every worker as ops.h says.

// A layer's attention to a batch. `scratch` has q, k, v, cos and sin of the batch's rows, and gets `attended`.
struct AttentionStep {
  const kernels::Table& kernels;
  const Config& config;
  const Attention& weights;  // only the norms are used
  std::size_t layer;
  const Batch& batch;
  const Scratch& scratch;
  std::atomic<bool>& cancelled;  // set by the first worker; the rest of `attended` is then not written
};

// Normalizes q of the rows `queries` and k of `rows` per head, if the layer has these norms, and rotates them by RoPE,
// in place. Then writes k and v of `rows` to the cache at their positions.
void rotate_and_cache(const AttentionStep& step, Range rows, Range queries, const Worker& worker);

// Computes attended = softmax(q Kᵀ / sqrt(D)) V for the rows from `first_query` on: causal grouped-query attention
// (Ainslie et al. 2023, arXiv:2305.13245) of each row to the positions of its text up to the row's position. If the
// cache is q8_0, keys and values are multiplied as integers: queries, and softmax(scores) times the values' scales, are
// rounded to 8 bits in blocks of 32.
void attend(const AttentionStep& step, std::size_t first_query, const Worker& worker);

// Does both for a batch of single tokens. No worker waits for another, because each does whole kv heads.
void rotate_and_attend(const AttentionStep& step, const Worker& worker);

}  // namespace minimind
