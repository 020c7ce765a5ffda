#pragma once

#include <cstddef>

#include "runtime/engine/kv_cache.h"
#include "runtime/engine/matrix.h"
#include "runtime/engine/model.h"
#include "runtime/engine/thread_team.h"
#include "runtime/kernels/kernels.h"

namespace minimind {

// Attention's part of a transformer layer, called by every worker of a team as ops.h says.

// Everything that attention works on besides weights. The queries are those of the last Q tokens of the batch.
struct AttentionBatch {
  Matrix<float> q;    // [Q, H * head_dim]
  Matrix<float> k;    // [T, K * head_dim]
  Matrix<float> v;    // [T, K * head_dim]
  Matrix<float> cos;  // [T, head_dim / 2]
  Matrix<float> sin;  // [T, head_dim / 2]
  Matrix<float> out;  // [Q, H * head_dim]
};

// Scratch of one worker: a tile of queries that share a kv head, their scores and what they attended to.
struct AttentionScratch {
  Matrix<float> q;                                // [tile rows, head_dim]
  Matrix<float> scores;                           // [tile rows, positions]
  Matrix<float> out;                              // [tile rows, head_dim]
  Matrix<kernels::ActivationBlock> q_blocks;      // [tile rows, head_dim / 32, rounded up], for a cache in q8_0
  Matrix<kernels::ActivationBlock> score_blocks;  // [tile rows, positions / 32, rounded up], likewise
};

// How many queries of the heads that share a kv head are attended to at once, at least one token's.
std::size_t attention_tile_rows(const Config& config);

// q and k: per-head norm where the layer has one, then RoPE, in place; k and v then go into the cache behind its
// present size.
void rotate_and_cache(const kernels::Table& kernels, const Config& config, const Attention& attention,
                      const AttentionBatch& batch, std::size_t layer, KvCache& cache, const Worker& worker);

// out = causal grouped-query attention of q over all positions in the cache up to each token's own. Keys and values in
// q8_0 are multiplied as integers, so that queries are rounded to 8 bits in blocks of 32, too, and so are
// softmax(scores) times the values' scales.
void attend(const kernels::Table& kernels, const Config& config, const AttentionBatch& batch, std::size_t layer,
            const KvCache& cache, const AttentionScratch& scratch, const Worker& worker);

// Both for a single token, with no need to wait in between: each worker does whole kv heads.
void rotate_and_attend(const kernels::Table& kernels, const Config& config, const Attention& attention,
                       const AttentionBatch& batch, std::size_t layer, KvCache& cache, const AttentionScratch& scratch,
                       const Worker& worker);

}  // namespace minimind
