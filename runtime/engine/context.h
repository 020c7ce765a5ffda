#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/engine/forward.h"
#include "runtime/engine/kv_cache.h"
#include "runtime/engine/matrix.h"
#include "weights/model/config.h"

namespace minimind {

// The tokens a model has run over, and what it keeps of them: the keys and values of token i are at position i of the
// cache. All memory is taken when it is made.
class Context {
 public:
  // Throws Error as KvCache does.
  Context(const Config& config, std::size_t capacity, KvType type = KvType::f32);

  std::size_t size() const { return tokens_.size(); }
  std::size_t capacity() const { return cache_.capacity(); }
  std::span<const std::int32_t> tokens() const { return tokens_; }

  // To read keys and values, or to write them; its size is kept by what follows here.
  KvCache& cache() { return cache_; }

  // Runs the tokens behind what is there, which leave room for them; logits as in Forward::run.
  void run(Forward& forward, std::span<const std::int32_t> tokens, Matrix<float> logits);

  // Forgets what is there and takes these tokens, which fit. Their keys and values were computed before: the caller
  // writes them all into the cache.
  void assign(std::span<const std::int32_t> tokens);

  // Forgets all but the first `size` tokens, which are there.
  void rewind(std::size_t size);

  // Rewinds to where `prompt` begins to differ, and to one token before its end at most, whose logits are needed to
  // continue it. Returns how many tokens stay.
  std::size_t keep_common(std::span<const std::int32_t> prompt);

 private:
  KvCache cache_;
  std::vector<std::int32_t> tokens_;
};

// Runs the tokens behind those of the context, in batches of forward.max_tokens(), and writes the logits of the last
// one [vocab_size]. Returns early, with fewer tokens in the context, once `interrupted` is set.
void prefill(Forward& forward, Context& context, std::span<const std::int32_t> tokens, std::span<float> logits,
             const std::atomic<bool>& interrupted);

}  // namespace minimind
