#include "runtime/engine/forward.h"

#include <fmt/core.h>

#include "runtime/engine/attention.h"
#include "runtime/engine/feed_forward.h"
#include "runtime/engine/ops.h"
#include "weights/base/cancel.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

// Returns the same for all workers: whether the pass ends early. Until `cancelled` may be set again, all workers must
// meet at another barrier, as they do within each block: a slow one may still read it.
bool cancelled_after_barrier(std::atomic<bool>& cancelled, Worker& worker) {
  if (worker.index() == 0 && Cancellation::requested()) cancelled = true;
  worker.barrier();
  return cancelled;
}

}  // namespace

void check_tokens(std::span<const std::int32_t> tokens, std::size_t vocab_size) {
  for (const std::int32_t token : tokens) {
    if (token < 0 || static_cast<std::size_t>(token) >= vocab_size) {
      throw Error(fmt::format("token {} is not in the model's vocabulary of {} (ids 0 to {})", token, vocab_size,
                              vocab_size - 1));
    }
  }
}

Forward::Forward(const Model& model, const kernels::Table& kernels, std::size_t threads, std::size_t max_tokens,
                 std::size_t max_positions)
    : model_(model),
      kernels_(kernels),
      team_(threads),
      max_tokens_(max_tokens),
      max_positions_(max_positions),
      slots_per_token_(slots_per_token(model.config)),
      batch_(max_tokens,
             attention_tile_rows(model.config) / (model.config.num_attention_heads / model.config.num_key_value_heads)),
      scratch_(model, max_tokens, max_positions, threads) {}

void Forward::run(Context& context, std::span<const std::int32_t> tokens, Matrix<float> logits) {
  const Piece piece{&context, tokens, logits.rows};
  run(std::span(&piece, 1), logits);
}

void Forward::run(std::span<const Piece> pieces, Matrix<float> logits) {
  for (const Piece& piece : pieces) {
    assert(piece.context->size() + piece.tokens.size() <= max_positions_);
    check_tokens(piece.tokens, model_.config.vocab_size);
  }
  batch_.assign(pieces);
  const Range all = batch_.all(), requested = batch_.requested();
  assert(!all.empty() && all.size() <= max_tokens_ && logits.rows == requested.size());

  std::atomic<bool> cancelled = false;  // set by the first worker only, and never reset
  const ProfiledPass pass(profile_, all.size());
  const auto body = [&](Worker& worker) {
    worker.set_observer(observer_);
    embed(model_, batch_.rows(), scratch_.x.rows(all), worker);
    worker.show("embed_tokens", as_const(scratch_.x.rows(all)));
    rope_table(model_.rope, batch_.rows(), scratch_.cos.rows(all), scratch_.sin.rows(all), worker);
    worker.barrier();

    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      // The last layer caches keys and values of every token, but only the requested rows are needed after it.
      const Range rows = i + 1 < model_.layers.size() ? all : requested;
      attention_block(i, rows, cancelled, worker);
      if (rows.empty() || cancelled_after_barrier(cancelled, worker)) return;
      const Layer& layer = model_.layers[i];
      if (const auto* const ffn = std::get_if<FeedForward>(&layer.mlp)) {
        dense_block(layer, *ffn, rows, worker);
      } else {
        expert_block(layer, std::get<MixtureOfExperts>(layer.mlp), rows, worker);
      }
      worker.show("output", as_const(scratch_.x.rows(rows)));
      if (cancelled_after_barrier(cancelled, worker)) return;
    }

    const WeightMatrix& output = model_.output();
    const Activations n = normed("norm", requested, model_.norm, worker);
    if (requested.size() > 1) worker.barrier();
    worker.begin(Operation::lm_head);
    matmul(kernels_, output, n, logits, worker);
    worker.show("lm_head", as_const(logits));
  };
  run_team(team_, body, pass.threads());
  if (cancelled) throw Cancelled();
  for (const Piece& piece : pieces) piece.context->append(piece.tokens);
}

// x += W_o attention(W_q n, W_k n, W_v n), n = norm(x), for `rows`; keys and values are cached for all rows.
void Forward::attention_block(std::size_t index, Range rows, std::atomic<bool>& cancelled, Worker& worker) {
  const Layer& layer = model_.layers[index];
  const Attention& attention = layer.attention;
  const Range all = batch_.all();
  const bool single = rows.size() == 1;
  const AttentionStep step{.kernels = kernels_,
                           .config = model_.config,
                           .weights = attention,
                           .layer = index,
                           .batch = batch_,
                           .q = scratch_.q.rows(all),
                           .k = scratch_.k.rows(all),
                           .v = scratch_.v.rows(all),
                           .cos = scratch_.cos.rows(all),
                           .sin = scratch_.sin.rows(all),
                           .out = scratch_.attended.rows(all),
                           .cancelled = cancelled};

  const Activations n = normed("input_layernorm", all, layer.input_layernorm, worker);
  if (all.size() > 1) worker.barrier();
  worker.begin(Operation::qkv);
  matmul(kernels_, attention.q_proj, n.row_range(rows), step.q.row_range(rows), worker);
  matmul(kernels_, attention.k_proj, n, step.k, worker);
  matmul(kernels_, attention.v_proj, n, step.v, worker);
  worker.show("self_attn.q_proj", as_const(step.q.row_range(rows)), rows.begin);
  worker.show("self_attn.k_proj", as_const(step.k));
  worker.show("self_attn.v_proj", as_const(step.v));
  worker.barrier();
  const AttentionScratch& own = scratch_.attention[worker.index()];
  const std::size_t tiles = batch_.tiles(rows.begin).size();
  const bool every_worker_has_a_head = worker.count() <= tiles * model_.config.num_key_value_heads;
  if (batch_.single_tokens() && rows.size() == all.size() && every_worker_has_a_head) {
    rotate_and_attend(step, own, worker);
  } else {
    rotate_and_cache(step, rows.begin, worker);
    worker.barrier();
    attend(step, rows.begin, own, worker);
  }
  if (rows.empty()) return;
  worker.barrier();
  worker.show("self_attn.o_proj.input", as_const(step.out.row_range(rows)));
  worker.begin(Operation::o_proj);
  const Activations attended = rounded(as_const(step.out.row_range(rows)), {0, rows.size()},
                                       share(rows.size(), single, slots_per_token_, worker));
  if (!single) worker.barrier();
  const Matrix<float> product = scratch_.product.first(rows.size());
  matmul(kernels_, attention.o_proj, attended, product, worker);
  worker.show("self_attn.o_proj", as_const(product));
  add(kernels_, as_const(product), scratch_.x.rows(rows), worker);
  worker.show("post_attention_layernorm.input", as_const(scratch_.x.rows(rows)));
}

// x += W_down(act(W_gate n) * W_up n), n = norm(x)
void Forward::dense_block(const Layer& layer, const FeedForward& ffn, Range rows, Worker& worker) {
  const FeedForwardScratch& scratch = scratch_.feed_forward;
  const bool single = rows.size() == 1;
  const Range slots{0, rows.size()};
  const Activations n = normed("post_attention_layernorm", rows, layer.post_attention_layernorm, worker);
  if (!single) worker.barrier();
  gate_up(kernels_, model_.config.hidden_act, ffn, n, slots, scratch, worker);
  worker.barrier();
  worker.begin(Operation::down);
  const Activations h =
      rounded(as_const(hidden(ffn, slots, scratch)), slots, share(slots.size(), single, slots_per_token_, worker));
  if (!single) worker.barrier();
  down(kernels_, ffn, h, slots, scratch, worker);
  add(kernels_, as_const(scratch.out.rows(slots)), scratch_.x.rows(rows), worker);
}

// x += sum over the experts of each token of weight * expert(n), n = norm(x). The rows of n are gathered by expert, so
// that each expert's weights are read once. If there is a single token, every worker routes it for itself.
void Forward::expert_block(const Layer& layer, const MixtureOfExperts& moe, Range rows, Worker& worker) {
  FeedForwardScratch& scratch = scratch_.feed_forward;
  const bool single = rows.size() == 1;
  const Range slots{0, rows.size() * slots_per_token_};
  const Share share_of_all = share(slots.size(), single, slots_per_token_, worker);
  Routing& routing = scratch.routing[single ? worker.index() : 0];

  Activations n = normed("post_attention_layernorm", rows, layer.post_attention_layernorm, worker, single);
  const std::size_t first = share(rows.size(), single, 1, worker).first_row;
  const Matrix<float> scores = scratch.router_scores.rows({first, first + rows.size()}, moe.routed_experts);
  route(kernels_, moe, n.exact, scores, routing, worker);
  if (!single) worker.barrier();
  if (single || worker.index() == 0) assign_slots(moe, rows.size(), routing);
  if (!single) {
    worker.barrier();
    gather(routing, n.exact, scratch.gathered.rows(slots), worker);
    n = rounded(as_const(scratch.gathered.rows(slots)), slots, share_of_all);
    worker.barrier();
  }
  for (std::size_t e = 0; e < moe.experts.size(); ++e) {
    const Range of_e = routing.slots_of(e);
    if (of_e.empty()) continue;
    const Activations x = single ? n : n.row_range(of_e);
    gate_up(kernels_, model_.config.hidden_act, moe.experts[e], x, of_e, scratch, worker);
  }
  worker.barrier();
  worker.begin(Operation::down);
  const auto hidden_of = [&](std::size_t e, Range own) {
    const FeedForward& expert = moe.experts[e];
    const Range of_e = routing.slots_of(e);
    return rounded(as_const(hidden(expert, of_e, scratch)), of_e, {own, share_of_all.first_row});
  };
  for (std::size_t e = 0; e < moe.experts.size(); ++e) hidden_of(e, share_of_all.own);
  if (!single) worker.barrier();
  const Range none;
  for (std::size_t e = 0; e < moe.experts.size(); ++e) {
    const Range of_e = routing.slots_of(e);
    if (!of_e.empty()) down(kernels_, moe.experts[e], hidden_of(e, none), of_e, scratch, worker);
  }
  add_experts(kernels_, routing, as_const(scratch.out.rows(slots)), scratch_.x.rows(rows), worker);
}

Forward::Share Forward::share(std::size_t rows, bool single, std::size_t rows_per_token, const Worker& worker) const {
  if (single) return {{0, rows}, (max_tokens_ + worker.index()) * rows_per_token};
  return {worker.share(rows), 0};
}

// Computes norm(x) of these rows. The result may be read once every worker has done its share.
Activations Forward::normed(const char* point, Range rows, const std::vector<float>& weight, Worker& worker,
                            bool round) {
  const bool single = rows.size() == 1;
  const std::size_t first = share(rows.size(), single, 1, worker).first_row;
  const Matrix<float> n = scratch_.normed.rows({first, first + rows.size()});
  rms_norm(kernels_, as_const(scratch_.x.rows(rows)), weight, model_.config.rms_norm_eps, n, worker);
  worker.show(point, as_const(n));
  if (!round) return {as_const(n)};
  return rounded(as_const(n), {0, rows.size()}, share(rows.size(), single, slots_per_token_, worker));
}

// Returns x, the rows of these slots, rounded as the model's matrices require. The result may be read once every worker
// has done its share.
Activations Forward::rounded(Matrix<const float> x, Range slots, const Share& share) const {
  const Rounding* const rounding = model_.rounding;
  if (!rounding) return {x};
  const Matrix<std::byte> to =
      scratch_.rounded.rows({share.first_row + slots.begin, share.first_row + slots.end}, rounding->row_bytes(x.cols));
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const std::size_t slot = slots.begin + i;
    if (slot >= share.own.begin && slot < share.own.end) rounding->round(kernels_, x.row(i), x.cols, to.row(i));
  }
  return {x, as_const(to)};
}

}  // namespace minimind
