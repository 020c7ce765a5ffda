#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/engine/batch.h"
#include "runtime/engine/context.h"
#include "runtime/engine/matrix.h"
#include "runtime/engine/model.h"
#include "runtime/engine/ops.h"
#include "runtime/engine/profile.h"
#include "runtime/engine/scratch.h"
#include "runtime/engine/thread_team.h"
#include "runtime/kernels/kernels.h"

namespace minimind {

// How many tokens of a prompt are run at once: enough to use each weight many times, few enough to keep the scratch in
// the L2 cache.
inline constexpr std::size_t batch_tokens = 256;

// Throws Error naming the first id outside [0, vocab_size).
void check_tokens(std::span<const std::int32_t> tokens, std::size_t vocab_size);

// Runs a model over a batch: embed -> [norm, attention, norm, feed-forward] x L -> norm -> logits. One function for
// prompt and generation, for one text and many: the logits of a token are bit for bit the same regardless of the rest
// of the batch, of how its text was divided into batches, and of the number of threads. The constructor allocates all
// memory.
class Forward {
 public:
  // For batches of up to `max_tokens` tokens of contexts of up to `max_positions`. `model` must outlive this.
  Forward(const Model& model, const kernels::Table& kernels, std::size_t threads, std::size_t max_tokens,
          std::size_t max_positions);

  // Runs the tokens of all pieces and appends them to their contexts. Writes the requested logits in the order of the
  // pieces: [sum of logit_rows, vocab_size]. Throws Error as check_tokens() does, before anything has changed, and
  // Cancelled, in any layer's attention, before the contexts have changed.
  void run(std::span<const Piece> pieces, Matrix<float> logits);

  // Runs a batch of one piece, with logits.rows as its logit_rows.
  void run(Context& context, std::span<const std::int32_t> tokens, Matrix<float> logits);

  // Adds the time of all later passes to `profile`, unless it is null. It must have as many threads as this and must
  // outlive its use.
  void set_profile(Profile* profile) {
    assert(!profile || profile->single.threads.size() == threads());
    profile_ = profile;
  }

  // Shows all later passes to `observer`, unless it is null. It must outlive its use, and this must have one thread.
  void set_observer(Observer* observer) {
    assert(!observer || threads() == 1);
    observer_ = observer;
  }

  std::size_t max_tokens() const { return max_tokens_; }
  std::size_t threads() const { return team_.most(); }
  // Returns how many of them the next pass will use: see TeamSize.
  std::size_t team_size() const { return team_.threads(); }
  const Model& model() const { return model_; }

 private:
  // Returns the first row of the memory for what workers compute of these rows and read next. Each worker computes a
  // single row for itself, after those of max_tokens.
  std::size_t first_row(Range rows, const Worker& worker) const {
    return rows.size() == 1 ? max_tokens_ + worker.index() : rows.begin;
  }
  void cache_and_attend(std::size_t index, Range rows, Range queries, std::atomic<bool>& cancelled, Worker& worker,
                        Worker& team);
  void add_attention(const Layer& layer, Range rows, Worker& worker);
  void dense_block(const Layer& layer, const FeedForward& ffn, Range rows, Worker& worker);
  void expert_block(const Layer& layer, const MixtureOfExperts& moe, Range rows, Worker& worker);
  Activations normed(const char* point, Range rows, const std::vector<float>& weight, Worker& worker,
                     bool round = true);
  Activations rounded(Matrix<const float> x, Range slots, Range own, std::size_t first_row) const;
  Activations rounded(Matrix<const float> x, Range rows, const Worker& worker) const {
    return rounded(x, {0, rows.size()}, own_rows(rows.size(), worker), first_row(rows, worker));
  }

  const Model& model_;
  const kernels::Table& kernels_;
  TeamSize team_;
  std::size_t max_tokens_;
  std::size_t max_positions_;
  std::size_t slots_per_token_;
  Profile* profile_ = nullptr;
  Observer* observer_ = nullptr;
  Batch batch_;
  Scratch scratch_;
};

}  // namespace minimind
