#pragma once

#include <cassert>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/kernels/kernels.h"
#include "weights/config.h"
#include "weights/dtype.h"

namespace minimind {

// How keys and values are held: exactly, or in half the memory, rounded.
enum class KvType { f32, f16 };

constexpr std::string_view name_of(KvType type) {
  return type == KvType::f32 ? "f32" : "f16";
}

// "f32" or "f16". Throws UsageError for anything else.
KvType parse_kv_type(const std::string& name);

// What one kv head of one layer has seen, laid out as the weights of two products, see kernels::Matmul: q K^T, in which
// positions are rows, and scores V, in which they are columns.
template <class Element>
struct KvPanels {
  const Element* keys;  // [capacity / 16][head_dim][16 positions]
  std::size_t keys_panel_stride;
  const Element* values;  // [head_dim / 16][capacity][16 numbers of the head]
  std::size_t values_panel_stride;
};

// The keys (after RoPE) and values of every layer and position seen so far. Memory is reserved for `capacity` positions
// and used as they fill.
class KvCache {
 public:
  // Throws Error, saying how much memory it would take, when that cannot be had.
  KvCache(const Config& config, std::size_t capacity, KvType type = KvType::f32);

  std::size_t size() const { return size_; }  // positions filled
  std::size_t capacity() const { return capacity_; }
  KvType type() const { return type_; }

  // Key and value, both [head_dim], of one position. f16 has nothing beyond 65504: what is larger becomes infinite.
  void put(const kernels::Table& kernels, std::size_t layer, std::size_t kv_head, std::size_t position,
           const float* key, const float* value);

  std::variant<KvPanels<float>, KvPanels<F16>> panels(std::size_t layer, std::size_t kv_head) const;

  // Where everything lies that the positions filled take, keys in whole panels: what there is to store.
  std::vector<std::span<std::byte>> filled_parts();

  // Of keys and values together, in all layers: what one more position takes, and what attending to it reads.
  static std::size_t bytes_per_position(const Config& config, KvType type);

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
    template <class Element>
    void operator()(Element* data) const {
      std::free(data);
    }
  };
  // Both [layer][kv_head][what KvPanels says].
  template <class Element>
  struct Storage {
    std::unique_ptr<Element, Free> keys;
    std::unique_ptr<Element, Free> values;
  };
  template <class Element>
  bool take_memory();
  template <class Element>
  KvPanels<Element> panels_in(const Storage<Element>& storage, std::size_t head) const;

  KvType type_;
  std::size_t layers_;
  std::size_t kv_heads_;
  std::size_t head_dim_;
  std::size_t capacity_;
  std::size_t positions_;   // capacity, rounded up to whole panels
  std::size_t value_rows_;  // head_dim, likewise
  std::size_t size_ = 0;
  std::variant<Storage<float>, Storage<F16>> storage_;
};

}  // namespace minimind
