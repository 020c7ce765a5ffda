#include "runtime/engine/feed_forward.h"

#include <algorithm>

#include "runtime/engine/ops.h"

namespace minimind {
namespace {

void add_bias(const kernels::Table& kernels, const std::vector<float>& bias, Range columns, Matrix<float> y) {
  if (bias.empty()) return;
  for (std::size_t t = 0; t < y.rows; ++t) {
    kernels.add(y.row(t) + columns.begin, bias.data() + columns.begin, columns.size());
  }
}

}  // namespace

void gate_up(const kernels::Table& kernels, HiddenAct act, const FeedForward& ffn, const Activations& x, Range slots,
             const FeedForwardScratch& scratch, const Worker& worker) {
  const std::size_t width = ffn.up_proj.rows();
  const Range own = worker.share(kernels::panel_count(width));
  // A worker that computes many whole rows takes some columns at a time, which stay in the caches of its core until
  // they are multiplied. Those of `up` then use the same memory again: its rows have only as many columns, and overlap.
  constexpr std::size_t few_panels = 24, many = 64;
  const bool in_parts = slots.size() >= many && worker.count() == 1 && ffn.gate_proj && !worker.is_observed();
  const std::size_t at_once = in_parts ? few_panels : own.size();
  const Matrix<float> gate = hidden(ffn, slots, scratch);  // or up, if there is no gate
  const Matrix<float> up = scratch.up.rows(slots, in_parts ? std::min(width, few_panels * kernels::panel_rows) : width);
  for (std::size_t first = own.begin; first < own.end; first += at_once) {
    const Range panels{first, std::min(first + at_once, own.end)};
    const Range columns{first * kernels::panel_rows, std::min(panels.end * kernels::panel_rows, width)};
    worker.begin(Operation::gate_up);
    if (ffn.gate_proj) {
      matmul(kernels, *ffn.gate_proj, panels, x, gate);
      add_bias(kernels, ffn.gate_bias, columns, gate);
      worker.show("mlp.gate_proj", as_const(gate), slots.begin);
    }
    matmul(kernels, ffn.up_proj, panels, x, up);
    add_bias(kernels, ffn.up_bias, columns, up);
    worker.show("mlp.up_proj", as_const(up), slots.begin);
    worker.begin(Operation::activation);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const float* const factor = ffn.gate_proj ? up.row(i) + columns.begin : nullptr;
      kernels.activate(act, gate.row(i) + columns.begin, factor, columns.size());
    }
  }
  worker.show("mlp.down_proj.input", as_const(gate), slots.begin);
}

Matrix<float> hidden(const FeedForward& ffn, Range slots, const FeedForwardScratch& scratch) {
  return (ffn.gate_proj ? scratch.gate : scratch.up).rows(slots, ffn.up_proj.rows());
}

void down(const kernels::Table& kernels, const FeedForward& ffn, const Activations& hidden, Range slots,
          const FeedForwardScratch& scratch, const Worker& worker) {
  const Matrix<float> out = scratch.out.rows(slots);
  matmul(kernels, ffn.down_proj, hidden, out, worker);
  add_bias(kernels, ffn.down_bias, own_columns(out.cols, worker), out);
  worker.show("mlp.down_proj", as_const(out), slots.begin);
}

void choose_experts(const kernels::Table& kernels, float* scores, std::size_t experts, std::size_t k, bool normalize,
                    std::int32_t* expert, float* weight) {
  kernels.softmax(scores, experts);
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

void route(const kernels::Table& kernels, const MixtureOfExperts& moe, Matrix<const float> x, Matrix<float> scores,
           Routing& routing, const Worker& worker) {
  worker.begin(Operation::router);
  const Range own = own_rows(x.rows, worker);
  if (own.empty()) return;
  const std::size_t shared = moe.experts.size() - moe.routed_experts;
  const std::size_t per_token = moe.experts_per_token + shared;
  const Panels<float> router = panels_of<float>(moe.router);
  matmul(kernels, router, router.all(), x.row_range(own), scores.row_range(own));
  worker.show("mlp.gate", as_const(scores));
  for (std::size_t t = own.begin; t < own.end; ++t) {
    std::int32_t* const expert = &routing.expert[t * per_token];
    float* const weight = &routing.weight[t * per_token];
    choose_experts(kernels, scores.row(t), moe.routed_experts, moe.experts_per_token, moe.normalize, expert, weight);
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
  // Counting sort: first_slot[e] counts up to first_slot[e + 1] while expert e's slots are assigned, and is restored
  // below.
  for (std::size_t i = 0; i < tokens * per_token; ++i) {
    const std::size_t slot = routing.first_slot[static_cast<std::size_t>(routing.expert[i])]++;
    routing.slot[i] = slot;
    routing.token_of_slot[slot] = i / per_token;
  }
  for (std::size_t e = experts; e > 0; --e) routing.first_slot[e] = routing.first_slot[e - 1];
  routing.first_slot[0] = 0;
}

void gather(const Routing& routing, Matrix<const float> x, Matrix<float> y, const Worker& worker) {
  const Range slots = worker.share(y.rows);
  for (std::size_t slot = slots.begin; slot < slots.end; ++slot) {
    std::copy_n(x.row(routing.token_of_slot[slot]), x.cols, y.row(slot));
  }
}

void add_experts(const kernels::Table& kernels, const Routing& routing, Matrix<const float> out, Matrix<float> x,
                 const Worker& worker) {
  const Range columns = own_columns(x.cols, worker);
  const std::size_t per_token = out.rows / x.rows;
  for (std::size_t i = 0; i < out.rows; ++i) {
    kernels.add_scaled(x.row(i / per_token) + columns.begin, out.row(routing.slot[i]) + columns.begin,
                       routing.weight[i], columns.size());
  }
}

}  // namespace minimind
