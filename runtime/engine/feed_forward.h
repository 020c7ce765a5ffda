#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/engine/matrix.h"
#include "runtime/engine/model.h"
#include "runtime/engine/scratch.h"
#include "runtime/engine/thread_team.h"
#include "runtime/kernels/kernels.h"

namespace minimind {

// The feed-forward half of a layer: one FFN or many experts. A slot is one token in one FFN. The slots of a dense layer
// are its tokens; the slots of experts are ordered by expert, so that each expert multiplies contiguous rows. Each
// function is called by every worker as ops.h says.

// Computes gate = act(gate_proj x + bias) * (up_proj x + bias), or up = act(up_proj x + bias) without a gate, for these
// slots. x has one row per slot.
void gate_up(const kernels::Table& kernels, HiddenAct act, const FeedForward& ffn, const Activations& x, Range slots,
             const FeedForwardScratch& scratch, const Worker& worker);

// Returns the result of gate_up for these slots, [slots, F].
Matrix<float> hidden(const FeedForward& ffn, Range slots, const FeedForwardScratch& scratch);

// Computes out = down_proj hidden + bias for these slots. Splits the columns of out as matmul does.
void down(const kernels::Table& kernels, const FeedForward& ffn, const Activations& hidden, Range slots,
          const FeedForwardScratch& scratch, const Worker& worker);

// Routes one token: turns its scores [experts] into their softmax, and writes the k largest of these to expert and
// weight, largest first; among equals the lower index comes first. `normalize` divides the weights by their sum.
void choose_experts(const kernels::Table& kernels, float* scores, std::size_t experts, std::size_t k, bool normalize,
                    std::int32_t* expert, float* weight);

// Routes the worker's rows of x [T, d]: fills routing.expert and routing.weight. `scores` [T, routed experts] is
// scratch.
void route(const kernels::Table& kernels, const MixtureOfExperts& moe, Matrix<const float> x, Matrix<float> scores,
           Routing& routing, const Worker& worker);

// Fills slot, first_slot and token_of_slot from routing.expert. One worker calls this per routing.
void assign_slots(const MixtureOfExperts& moe, std::size_t tokens, Routing& routing);

// The worker's slots: y[slot] = x[token of the slot].
void gather(const Routing& routing, Matrix<const float> x, Matrix<float> y, const Worker& worker);

// The worker's columns: x[t] += sum over the experts of token t of weight * out[slot].
void add_experts(const kernels::Table& kernels, const Routing& routing, Matrix<const float> out, Matrix<float> x,
                 const Worker& worker);

}  // namespace minimind
