#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/engine/kv_cache.h"
#include "weights/model/config.h"

namespace minimind {

// The tokens of one text that a model has run over, and what it keeps of them: the keys and values of token i are at
// position i of the cache. All memory is allocated by the constructor.
class Context {
 public:
  // Throws Error as KvCache does.
  Context(const Config& config, std::size_t capacity, KvType type = KvType::f32);

  std::size_t size() const { return tokens_.size(); }
  std::size_t capacity() const { return cache_.capacity(); }
  std::span<const std::int32_t> tokens() const { return tokens_; }

  // The keys and values, to read or to write; the functions below keep their number.
  KvCache& cache() { return cache_; }

  // Adds tokens whose keys and values are in the cache already, or which the caller then writes there; they must fit.
  void append(std::span<const std::int32_t> tokens);

  // Replaces the contents with the first `size` tokens of another context of the same model and type, copying their
  // keys and values; they must fit.
  void copy_prefix(const Context& from, std::size_t size);

  // Drops all but the first `size` tokens; there must be as many.
  void rewind(std::size_t size);

  // Rewinds to where `prompt` starts to differ, and to one token before its end at most, whose logits are needed to
  // continue it. Returns how many tokens stay.
  std::size_t keep_common(std::span<const std::int32_t> prompt);

 private:
  KvCache cache_;
  std::vector<std::int32_t> tokens_;
};

}  // namespace minimind
