#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "runtime/engine/kv_cache.h"
#include "weights/model/config.h"

namespace minimind {

// Returns how many tokens two texts have in common at their start.
inline std::size_t common_prefix(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

// The tokens of one text that a model has processed, with their keys and values: those of token i are at position i of
// the cache. The constructor allocates all memory.
class Context {
 public:
  // Throws Error as KvCache does. `cuts`: see there.
  Context(const Config& config, std::size_t capacity, KvType type = KvType::f32,
          std::initializer_list<std::size_t> cuts = {})
      : cache_(config, capacity, type, cuts) {
    tokens_.reserve(capacity);
  }

  // A context with the first `size` tokens of another one, which must fit. Their keys and values are shared as far as
  // they are in whole parts of the other cache, else copied.
  Context(const Context& from, std::size_t size, std::size_t capacity, std::initializer_list<std::size_t> cuts = {})
      : cache_(from.cache_, size, capacity, cuts) {
    tokens_.reserve(capacity);
    append(from.tokens().first(size));
  }

  std::size_t size() const { return tokens_.size(); }
  std::size_t capacity() const { return cache_.capacity(); }
  std::span<const std::int32_t> tokens() const { return tokens_; }

  // The keys and values, to read or, from size() on, to write. size() positions are valid.
  KvCache& cache() { return cache_; }
  const KvCache& cache() const { return cache_; }

  // Appends tokens, which must fit. Their keys and values must be in the cache, or the caller must write them next.
  void append(std::span<const std::int32_t> tokens) {
    assert(size() + tokens.size() <= capacity());
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  }

  // Keeps only the first `size` tokens; there must be at least that many. Allocates memory, and throws Error as KvCache
  // does, if another context has some of the others.
  void rewind(std::size_t size) {
    assert(size <= tokens_.size());
    cache_.make_own(size);
    tokens_.resize(size);
  }

  // Returns the length of the longest common prefix with `prompt`, without the prompt's last token, whose logits are
  // needed to continue it.
  std::size_t common_prefix(std::span<const std::int32_t> prompt) const {
    return minimind::common_prefix(tokens_, prompt.first(prompt.empty() ? 0 : prompt.size() - 1));
  }

 private:
  KvCache cache_;
  std::vector<std::int32_t> tokens_;
};

}  // namespace minimind
