#include "runtime/engine/forward.h"

#include <fmt/core.h>

#include <algorithm>

#include "runtime/engine/attention.h"
#include "runtime/engine/feed_forward.h"
#include "weights/base/cancel.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

// Returns from how many tokens on it is faster if each worker multiplies its own tokens, which stay in the caches of
// its core, with all weights, than if it multiplies all tokens with a part of the weights: 64 of each worker for a
// matrix.
std::size_t least_tokens_apart(const Config& config, std::size_t workers) {
  const std::size_t experts = config.num_experts > 0 ? config.num_experts + config.n_shared_experts : 1;
  return 64 * workers * experts / slots_per_token(config);
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
  const auto body = [&](Worker& team) {
    team.set_observer(observer_);
    // Of many tokens, each worker computes its own alone, and waits for the others only before and after attention.
    const bool apart = all.size() >= least_tokens_apart(model_.config, team.count());
    Worker worker = apart ? team.alone() : team;
    Range rows = apart ? team.share(all.size()) : all;
    embed(model_, batch_.rows(rows), scratch_.x.rows(rows), worker);
    worker.show("embed_tokens", as_const(scratch_.x.rows(rows)));
    rope_table(model_.rope, batch_.rows(rows), scratch_.cos.rows(rows), scratch_.sin.rows(rows), worker);
    worker.barrier();

    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      const Layer& layer = model_.layers[i];
      const bool last = i + 1 == model_.layers.size();
      cache_and_attend(i, rows, last ? requested : all, cancelled, worker, team);
      if (cancelled) return;
      if (last) {  // keys and values of every token are cached; only the requested rows are needed from here on
        worker = team;
        rows = requested;
        if (rows.empty()) return;
      }
      add_attention(layer, rows, worker);
      worker.barrier();
      if (const auto* const ffn = std::get_if<FeedForward>(&layer.mlp)) {
        dense_block(layer, *ffn, rows, worker);
      } else {
        expert_block(layer, std::get<MixtureOfExperts>(layer.mlp), rows, worker);
      }
      worker.show("output", as_const(scratch_.x.rows(rows)));
      worker.barrier();
    }

    const WeightMatrix& output = model_.output();
    const Activations n = normed("norm", rows, model_.norm, worker);
    if (rows.size() > 1) worker.barrier();
    worker.begin(Operation::lm_head);
    matmul(kernels_, output, n, logits, worker);
    worker.show("lm_head", as_const(logits));
  };
  run_team(team_, body, pass.threads());
  if (cancelled) throw Cancelled();
  for (const Piece& piece : pieces) piece.context->append(piece.tokens);
}

// attended = attention(W_q n, W_k n, W_v n), n = norm(x), for `queries`, which are the last rows. A worker computes and
// caches keys and values of `rows`, which are its own or all; then the team attends. Afterwards each worker sees all
// that was attended, and the same in `cancelled`.
void Forward::cache_and_attend(std::size_t index, Range rows, Range queries, std::atomic<bool>& cancelled,
                               Worker& worker, Worker& team) {
  const Layer& layer = model_.layers[index];
  const Attention& attention = layer.attention;
  const Range q_rows{std::clamp(queries.begin, rows.begin, rows.end), rows.end};
  const AttentionStep step{kernels_, model_.config, attention, index, batch_, scratch_, cancelled};

  const Activations n = normed("input_layernorm", rows, layer.input_layernorm, worker);
  if (rows.size() > 1) worker.barrier();
  worker.begin(Operation::qkv);
  const Matrix<float> q = scratch_.q.rows(q_rows), k = scratch_.k.rows(rows), v = scratch_.v.rows(rows);
  matmul(kernels_, attention.q_proj, n.row_range({rows.size() - q.rows, rows.size()}), q, worker);
  matmul(kernels_, attention.k_proj, n, k, worker);
  matmul(kernels_, attention.v_proj, n, v, worker);
  worker.show("self_attn.q_proj", as_const(q), q_rows.begin);
  worker.show("self_attn.k_proj", as_const(k));
  worker.show("self_attn.v_proj", as_const(v));
  worker.barrier();
  const std::size_t tiles = batch_.tiles(queries.begin).size();
  const bool every_worker_has_a_head = team.count() <= tiles * model_.config.num_key_value_heads;
  if (batch_.single_tokens() && q.rows == batch_.all().size() && every_worker_has_a_head) {
    rotate_and_attend(step, worker);
  } else {
    rotate_and_cache(step, rows, q_rows, worker);
    team.barrier();
    attend(step, queries.begin, team);
  }
  team.barrier();
}

// x += W_o attended
void Forward::add_attention(const Layer& layer, Range rows, Worker& worker) {
  const Matrix<const float> attended = as_const(scratch_.attended.rows(rows));
  worker.show("self_attn.o_proj.input", attended);
  worker.begin(Operation::o_proj);
  const Activations x = rounded(attended, rows, worker);
  if (rows.size() > 1) worker.barrier();
  const Matrix<float> product = scratch_.product.rows(rows);
  matmul(kernels_, layer.attention.o_proj, x, product, worker);
  worker.show("self_attn.o_proj", as_const(product));
  add(kernels_, as_const(product), scratch_.x.rows(rows), worker);
  worker.show("post_attention_layernorm.input", as_const(scratch_.x.rows(rows)));
}

// x += W_down(act(W_gate n) * W_up n), n = norm(x)
void Forward::dense_block(const Layer& layer, const FeedForward& ffn, Range rows, Worker& worker) {
  const FeedForwardScratch& scratch = scratch_.feed_forward;
  const Activations n = normed("post_attention_layernorm", rows, layer.post_attention_layernorm, worker);
  if (rows.size() > 1) worker.barrier();
  gate_up(kernels_, model_.config.hidden_act, ffn, n, rows, scratch, worker);
  worker.barrier();
  worker.begin(Operation::down);
  const Activations h = rounded(as_const(hidden(ffn, rows, scratch)), rows, worker);
  if (rows.size() > 1) worker.barrier();
  down(kernels_, ffn, h, rows, scratch, worker);
  add(kernels_, as_const(scratch.out.rows(rows)), scratch_.x.rows(rows), worker);
}

// x += sum over the experts of each token of weight * expert(n), n = norm(x). The rows of n are gathered by expert, so
// that each expert's weights are read once. Every worker routes a single token, or its own, for itself.
void Forward::expert_block(const Layer& layer, const MixtureOfExperts& moe, Range rows, Worker& worker) {
  FeedForwardScratch& scratch = scratch_.feed_forward;
  const bool single = rows.size() == 1;
  const Range slots{rows.begin * slots_per_token_, rows.end * slots_per_token_};
  const Range own = single ? Range{0, slots.size()} : worker.share(slots.size());
  const std::size_t first = first_row(rows, worker);
  const bool routes_alone = single || worker.count() == 1;
  Routing& routing = scratch.routing[routes_alone ? worker.index() : 0];  // of slots from 0 on
  const auto in_scratch = [&](Range of_e) { return Range{slots.begin + of_e.begin, slots.begin + of_e.end}; };

  Activations n = normed("post_attention_layernorm", rows, layer.post_attention_layernorm, worker, single);
  const Matrix<float> scores = scratch.router_scores.rows({first, first + rows.size()}, moe.routed_experts);
  route(kernels_, moe, n.exact, scores, routing, worker);
  if (!single) worker.barrier();
  if (routes_alone || worker.index() == 0) assign_slots(moe, rows.size(), routing);
  if (!single) {
    worker.barrier();
    gather(routing, n.exact, scratch.gathered.rows(slots), worker);
    n = rounded(as_const(scratch.gathered.rows(slots)), {0, slots.size()}, own, first);
    worker.barrier();
  }
  for (std::size_t e = 0; e < moe.experts.size(); ++e) {
    const Range of_e = routing.slots_of(e);
    if (of_e.empty()) continue;
    const Activations x = single ? n : n.row_range(of_e);
    gate_up(kernels_, model_.config.hidden_act, moe.experts[e], x, in_scratch(of_e), scratch, worker);
  }
  worker.barrier();
  worker.begin(Operation::down);
  const auto hidden_of = [&](std::size_t e, Range rounds) {
    const Range of_e = routing.slots_of(e);
    return rounded(as_const(hidden(moe.experts[e], in_scratch(of_e), scratch)), of_e, rounds, first);
  };
  for (std::size_t e = 0; e < moe.experts.size(); ++e) hidden_of(e, own);
  if (!single) worker.barrier();
  for (std::size_t e = 0; e < moe.experts.size(); ++e) {
    const Range of_e = routing.slots_of(e);
    if (!of_e.empty()) down(kernels_, moe.experts[e], hidden_of(e, {}), in_scratch(of_e), scratch, worker);
  }
  add_experts(kernels_, routing, as_const(scratch.out.rows(slots)), scratch_.x.rows(rows), worker);
}

// Computes norm(x) of these rows. The result may be read once every worker has done its share.
Activations Forward::normed(const char* point, Range rows, const std::vector<float>& weight, Worker& worker,
                            bool round) {
  const std::size_t first = first_row(rows, worker);
  const Matrix<float> n = scratch_.normed.rows({first, first + rows.size()});
  rms_norm(kernels_, as_const(scratch_.x.rows(rows)), weight, model_.config.rms_norm_eps, n, worker);
  worker.show(point, as_const(n));
  return round ? rounded(as_const(n), rows, worker) : Activations{as_const(n)};
}

// Returns x, the rows of these slots, rounded as the model's matrices require. The result may be read once every worker
// has done its share.
Activations Forward::rounded(Matrix<const float> x, Range slots, Range own, std::size_t first_row) const {
  const Rounding* const rounding = model_.rounding;
  if (!rounding) return {x};
  const std::size_t first = first_row * slots_per_token_;
  const Matrix<std::byte> to =
      scratch_.rounded.rows({first + slots.begin, first + slots.end}, rounding->row_bytes(x.cols));
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const std::size_t slot = slots.begin + i;
    if (slot >= own.begin && slot < own.end) rounding->round(kernels_, x.row(i), x.cols, to.row(i));
  }
  return {x, as_const(to)};
}

}  // namespace minimind
