#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/engine/attention.h"
#include "runtime/engine/kv_cache.h"
#include "runtime/engine/matrix.h"
#include "runtime/engine/model.h"
#include "runtime/engine/ops.h"
#include "runtime/engine/profile.h"
#include "runtime/kernels/kernels.h"

namespace minimind {

// Throws Error that names the first id outside [0, vocab_size).
void check_tokens(std::span<const std::int32_t> tokens, std::size_t vocab_size);

// Runs a model over tokens: embed -> [norm, attention, norm, feed-forward] x L -> norm -> logits. One body for prompt
// and generation: a batch of T tokens gives bit for bit the logits of T batches of one, and so does any number of
// threads. All scratch is taken here, none in run.
class Forward {
 public:
  // For batches of up to `max_tokens` tokens in contexts of up to `max_positions`. `model` must outlive this.
  Forward(const Model& model, const kernels::Table& kernels, std::size_t threads, std::size_t max_tokens,
          std::size_t max_positions);

  // The tokens, 1 to max_tokens of them, follow what is in the cache, which grows by them. The logits of the last
  // `logits.rows` of them, 0 or more, are written to logits [rows, vocab_size]. Throws Error as check_tokens() does,
  // before anything has changed.
  void run(std::span<const std::int32_t> tokens, KvCache& cache, Matrix<float> logits);

  // Where the time of what is run from now on is added up, with as many threads as this has; null for nowhere. It must
  // outlive its use.
  void set_profile(Profile* profile) {
    assert(!profile || profile->single.threads.size() == threads_);
    profile_ = profile;
  }

  std::size_t max_tokens() const { return max_tokens_; }
  std::size_t threads() const { return threads_; }
  const Model& model() const { return model_; }

 private:
  void attention_block(std::size_t index, KvCache& cache, std::size_t tokens, std::size_t queries, Worker& worker);
  void mlp_block(const Layer& layer, Matrix<float> x, Worker& worker);
  void feed_forward_block(const FeedForward& network, const std::vector<float>& norm, Matrix<float> x, Worker& worker);
  void mixture_block(const MixtureOfExperts& moe, const std::vector<float>& norm, Matrix<float> x, Worker& worker);
  const Routing& routed(const MixtureOfExperts& moe, Matrix<const float> normed, Worker& worker);
  Activations gathered(const MixtureOfExperts& moe, const Routing& routing, Matrix<const float> normed, Worker& worker);
  Activations normalized(const std::vector<float>& weight, Matrix<const float> x, bool quantize, Worker& worker);
  Activations prepared(Matrix<const float> x, bool quantize, std::size_t first, Worker& worker);
  AttentionBatch attention_batch(std::size_t tokens, std::size_t queries);
  AttentionScratch attention_scratch(const Worker& worker);
  FeedForwardBatch feed_forward_batch();
  Matrix<float> rows_of(std::vector<float>& storage, std::size_t rows, std::size_t cols) const;

  const Model& model_;
  const kernels::Table& kernels_;
  std::size_t threads_;
  std::size_t max_tokens_;
  std::size_t max_positions_;
  std::size_t widest_network_;       // the largest F of any network
  std::size_t slots_per_token_;      // 1, or the networks a token goes through in a mixture
  std::size_t widest_input_blocks_;  // of a matrix's input, in blocks of 8 bits
  Profile* profile_ = nullptr;

  // T = max_tokens, S = T * slots_per_token; each thread has a row behind those of the batch for what it does alone
  std::vector<float> x_;                                 // [T, d], the residual stream
  std::vector<float> normed_;                            // [T + threads, d]
  std::vector<kernels::ActivationBlock> quantized_;      // [S + threads, widest_input_blocks]
  std::vector<float> product_;                           // [T, d]
  std::vector<float> q_;                                 // [T, H * head_dim]
  std::vector<float> k_;                                 // [T, K * head_dim]
  std::vector<float> v_;                                 // [T, K * head_dim]
  std::vector<float> attended_;                          // [T, H * head_dim]
  std::vector<float> cos_, sin_;                         // [T, head_dim / 2]
  std::vector<float> tile_q_, tile_out_;                 // [threads * attention_tile_rows, head_dim]
  std::vector<kernels::ActivationBlock> tile_q_blocks_;  // [threads * attention_tile_rows, head_dim / 32, rounded up]
  // Not initialised, so that a long context takes no memory until it is filled.
  std::unique_ptr<float[]> tile_scores_;  // [threads * attention_tile_rows, max_positions]
  // [threads * attention_tile_rows, max_positions / 32, rounded up]
  std::unique_ptr<kernels::ActivationBlock[]> tile_score_blocks_;
  std::vector<float> gathered_;       // [S, d], only with experts
  std::vector<float> gate_, up_;      // [S, F]
  std::vector<float> out_;            // [S, d]
  std::vector<float> router_scores_;  // [T + threads, experts]
  std::vector<Routing> routing_;      // one for each thread; longer batches use the first
};

}  // namespace minimind
