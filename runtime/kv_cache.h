#pragma once

#include <cassert>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>

#include "weights/config.h"

namespace minimind {

// The keys (after RoPE) and values of every layer and position seen so far, as f32. Those of one kv head lie together:
// [layer][kv_head][position][head_dim]. Memory is reserved for `capacity` positions and used as they fill.
class KvCache {
 public:
  // Throws Error, saying how much memory it would take, when that cannot be had.
  KvCache(const Config& config, std::size_t capacity);

  std::size_t size() const { return size_; }  // positions filled
  std::size_t capacity() const { return capacity_; }

  float* key(std::size_t layer, std::size_t kv_head, std::size_t position) {
    return keys_.get() + offset(layer, kv_head, position);
  }
  float* value(std::size_t layer, std::size_t kv_head, std::size_t position) {
    return values_.get() + offset(layer, kv_head, position);
  }

  // All keys of a kv head, or all values, at the positions filled: with the others', all that there is to store.
  std::span<std::byte> key_bytes(std::size_t layer, std::size_t kv_head) {
    return std::as_writable_bytes(std::span(key(layer, kv_head, 0), size_ * head_dim_));
  }
  std::span<std::byte> value_bytes(std::size_t layer, std::size_t kv_head) {
    return std::as_writable_bytes(std::span(value(layer, kv_head, 0), size_ * head_dim_));
  }
  // Of the numbers in these bytes.
  std::string_view type_name() const { return "f32"; }

  // Of keys and values together, in all layers: what one more position takes, and what attending to it reads.
  static std::size_t bytes_per_position(const Config& config) {
    return 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * sizeof(float);
  }

  // The next `count` positions have been written.
  void advance(std::size_t count) { size_ += count; }

  // Forgets all but the first `size` positions, which are there; those that were written behind them stay as they are
  // until they are written anew.
  void rewind(std::size_t size) {
    assert(size <= size_);
    size_ = size;
  }

 private:
  struct Free {
    void operator()(float* data) const { std::free(data); }
  };
  std::size_t offset(std::size_t layer, std::size_t kv_head, std::size_t position) const {
    return ((layer * kv_heads_ + kv_head) * capacity_ + position) * head_dim_;
  }

  std::size_t kv_heads_;
  std::size_t head_dim_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  std::unique_ptr<float, Free> keys_;
  std::unique_ptr<float, Free> values_;
};

}  // namespace minimind
