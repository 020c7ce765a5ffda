#pragma once

#include <cstddef>
#include <vector>

#include "runtime/engine/attention.h"
#include "runtime/engine/feed_forward.h"
#include "runtime/engine/matrix.h"
#include "runtime/engine/model.h"
#include "runtime/kernels/kernels.h"

namespace minimind {

// The memory of forward passes over up to T tokens by W workers, in contexts of up to `max_positions`. d = hidden_size,
// H = num_attention_heads, K = num_key_value_heads, D = head_dim; S = T * slots_per_token as in feed_forward.h. Each
// worker computes a single row that all workers read for itself, which is faster than waiting for another worker. Such
// rows follow those of the batch.
struct Scratch {
  Scratch(const Model& model, std::size_t max_tokens, std::size_t max_positions, std::size_t workers);

  Buffer<float> x;                             // [T, d], the residual stream
  Buffer<float> product;                       // [T, d], what is added to x next
  Buffer<float> normed;                        // [T + W, d]
  Buffer<float> q;                             // [T, H * D]
  Buffer<float> k;                             // [T, K * D]
  Buffer<float> v;                             // [T, K * D]
  Buffer<float> attended;                      // [T, H * D]
  Buffer<float> cos;                           // [T, D / 2]
  Buffer<float> sin;                           // [T, D / 2]
  Buffer<kernels::ActivationBlock> quantized;  // [S + W * slots_per_token, the widest input of a matrix / 32]
  std::vector<AttentionScratch> attention;     // [W]
  FeedForwardScratch feed_forward;
};

}  // namespace minimind
