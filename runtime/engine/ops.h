#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/engine/matrix.h"
#include "runtime/engine/model.h"
#include "runtime/engine/thread_team.h"
#include "runtime/kernels/kernels.h"

namespace minimind {

// The steps of a transformer layer. Each is called by every worker of a team with the same arguments and does that
// worker's share; what it wrote may be read by others only after worker.barrier(). T is the number of tokens in the
// batch.

// x[t] = embed_tokens[tokens[t]]
void embed(const Model& model, std::span<const std::int32_t> tokens, Matrix<float> x, const Worker& worker);

// cos and sin, both [T, head_dim / 2], of positions first_position, first_position + 1, ...
void rope_table(const Rope& rope, std::size_t first_position, Matrix<float> cos, Matrix<float> sin,
                const Worker& worker);

// y[t] = weight x[t], split by rows of the weight
void matmul(const kernels::Table& kernels, const WeightMatrix& weight, const Activations& x, Matrix<float> y,
            const Worker& worker);

// residual[t] += weight x[t]; `product` [T, rows] is scratch
void matmul_add(const kernels::Table& kernels, const WeightMatrix& weight, const Activations& x, Matrix<float> product,
                Matrix<float> residual, const Worker& worker);

// Scratch of one feed-forward network, or of all experts together: a slot is one token in one network.
struct FeedForwardBatch {
  Matrix<float> gate;  // [slots, F]
  Matrix<float> up;    // [slots, F]
  Matrix<float> out;   // [slots, d]
};

// gate = act(gate_proj x + bias) * (up_proj x + bias), or up = act(up_proj x + bias) in a network without a gate, for
// the slots from `first` on.
void feed_forward_in(const kernels::Table& kernels, HiddenAct act, const FeedForward& network, const Activations& x,
                     std::size_t first, const FeedForwardBatch& batch, const Worker& worker);

// What feed_forward_in left in `count` slots from `first` on, [count, F].
Matrix<float> hidden_of(const FeedForward& network, std::size_t first, std::size_t count,
                        const FeedForwardBatch& batch);

// out = down_proj hidden + bias, for the slots from `first` on. Splits the columns of out as matmul splits rows.
void feed_forward_out(const kernels::Table& kernels, const FeedForward& network, const Activations& hidden,
                      std::size_t first, const FeedForwardBatch& batch, const Worker& worker);

// The columns of y that matmul gives to this worker, for a weight of so many rows.
Range columns_of(std::size_t rows, const Worker& worker);

// Which tokens go through which expert.
struct Routing {
  std::vector<std::int32_t> expert;        // [T * networks per token]: routed by falling score, then the shared ones
  std::vector<float> weight;               // likewise; 1 for shared experts
  std::vector<std::size_t> slot;           // likewise: its slot; slots are ordered by expert
  std::vector<std::size_t> first_slot;     // [experts + 1]: expert e has slots [first_slot[e], first_slot[e + 1])
  std::vector<std::size_t> token_of_slot;  // [slots]
};

// Fills expert and weight for the tokens of `share`; `scores` [T, routed experts] is scratch.
void route(const kernels::Table& kernels, const MixtureOfExperts& moe, Matrix<const float> x, Range share,
           Matrix<float> scores, Routing& routing);

// Fills slot, first_slot and token_of_slot. For one worker alone.
void assign_slots(const MixtureOfExperts& moe, std::size_t tokens, Routing& routing);

}  // namespace minimind
