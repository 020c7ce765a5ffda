#include "runtime/engine/ops.h"

#include <algorithm>

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
