#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/engine/matrix.h"
#include "runtime/engine/model.h"
#include "runtime/kernels/kernels.h"

namespace minimind {

// The memory of forward passes over up to T tokens by W workers, in contexts of up to `max_positions`. d = hidden_size,
// H = num_attention_heads, K = num_key_value_heads, D = head_dim, N = slots_per_token, S = T * N.

// Returns how many rows a tile has: the queries of at least one token, for all heads that share a kv head.
std::size_t attention_tile_rows(const Config& config);

// Memory of one worker: a tile of queries that share a kv head, their scores and the result.
struct AttentionScratch {
  AttentionScratch(const Config& config, std::size_t max_positions);

  Buffer<float> q;                                // [tile rows, D]
  Buffer<float> scores;                           // [tile rows, max_positions]
  Buffer<float> out;                              // [tile rows, D]
  Buffer<kernels::ActivationBlock> q_blocks;      // [tile rows, D / 32, rounded up], for a q8_0 cache
  Buffer<kernels::ActivationBlock> score_blocks;  // [tile rows, max_positions / 32, rounded up], for a q8_0 cache
};

// Returns how many FFNs a token passes through: 1, or the number of its routed and shared experts.
std::size_t slots_per_token(const Config& config);

// Which tokens go through which expert.
struct Routing {
  std::vector<std::int32_t> expert;        // [T * N]: per token, the chosen experts by falling score, then the shared
  std::vector<float> weight;               // [T * N]: the weight of that expert for that token; 1 for shared experts
  std::vector<std::size_t> slot;           // [T * N]: the slot of that token in that expert
  std::vector<std::size_t> first_slot;     // [experts + 1]: expert e has slots [first_slot[e], first_slot[e + 1])
  std::vector<std::size_t> token_of_slot;  // [S]

  Range slots_of(std::size_t e) const { return {first_slot[e], first_slot[e + 1]}; }
};

// F is the largest of any FFN. Each worker has a row of scores for a single token.
struct FeedForwardScratch {
  FeedForwardScratch(const Model& model, std::size_t max_tokens, std::size_t workers);

  Buffer<float> gate;            // [S, F]
  Buffer<float> up;              // [S, F], or parts of it: see gate_up()
  Buffer<float> out;             // [S, d]
  Buffer<float> gathered;        // [S, d], only with experts
  Buffer<float> router_scores;   // [T + W, experts]
  std::vector<Routing> routing;  // [W]; all workers use the first for tokens that they share
};

// Each worker computes a single row that all workers read for itself, which is faster than waiting for another worker.
// Such rows follow those of the batch.
struct Scratch {
  Scratch(const Model& model, std::size_t max_tokens, std::size_t max_positions, std::size_t workers);

  Buffer<float> x;                          // [T, d], the residual stream
  Buffer<float> product;                    // [T, d], what is added to x next
  Buffer<float> normed;                     // [T + W, d]
  Buffer<float> q;                          // [T, H * D]
  Buffer<float> k;                          // [T, K * D]
  Buffer<float> v;                          // [T, K * D]
  Buffer<float> attended;                   // [T, H * D]
  Buffer<float> cos;                        // [T, D / 2]
  Buffer<float> sin;                        // [T, D / 2]
  Buffer<std::byte> rounded;                // [S + W * N, the bytes of the widest input of a matrix, rounded]
  std::vector<AttentionScratch> attention;  // [W]
  FeedForwardScratch feed_forward;
};

}  // namespace minimind
