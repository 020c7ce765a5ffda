#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "runtime/kernels/kernels.h"
#include "weights/config.h"
#include "weights/dtype.h"

namespace minimind {

// How keys and values are held: exactly, or rounded, in a half or little more than a quarter of the memory.
enum class KvType { f32, f16, q8_0 };

constexpr std::string_view name_of(KvType type) {
  return type == KvType::f32 ? "f32" : type == KvType::f16 ? "f16" : "q8_0";
}

// "f32", "f16" or "q8_0". Throws UsageError for anything else.
KvType parse_kv_type(const std::string& name);

// What one kv head of one layer has seen, laid out as the weights of two products, see kernels::Matmul: q K^T, in which
// positions are rows, and scores V, in which they are columns. Element is float, F16 or, for q8_0, std::int8_t, or one
// of these const. The numbers of q8_0 share a scale in blocks of 32 numbers of a head, of which the last may be
// narrower; those of the others are one block.
template <class Element>
struct KvPanels {
  using Scale = std::conditional_t<std::is_const_v<Element>, const float, float>;
  static constexpr bool has_scales = std::is_same_v<std::remove_const_t<Element>, std::int8_t>;

  Element* keys;        // [blocks][positions / 16][width(block)][16 positions]
  Element* values;      // [head_dim / 16, rounded up][positions][16 numbers of the head]
  Scale* key_scales;    // [blocks][positions]; of q8_0 alone
  Scale* value_scales;  // likewise
  std::size_t head_dim;
  std::size_t positions;  // that there is room for: whole panels

  std::size_t block_cols() const { return has_scales ? kernels::block_cols : head_dim; }
  std::size_t blocks() const { return (head_dim + block_cols() - 1) / block_cols(); }
  std::size_t width(std::size_t block) const { return std::min(block_cols(), head_dim - block * block_cols()); }

  Element* keys_of(std::size_t block) const { return keys + block * block_cols() * positions; }
  Element* values_of(std::size_t block) const { return values + block * block_cols() * positions; }
  Scale* key_scales_of(std::size_t block) const { return key_scales + block * positions; }
  Scale* value_scales_of(std::size_t block) const { return value_scales + block * positions; }
  std::size_t keys_panel_stride(std::size_t block) const { return kernels::panel_rows * width(block); }
  std::size_t values_panel_stride() const { return kernels::panel_rows * positions; }

  // Number i of a position's key, in front of the next one's by panel_rows, and of its value, in front of those up to
  // the next multiple of panel_rows.
  Element* key(std::size_t position, std::size_t i) const {
    const std::size_t block = i / block_cols(), panel = position / kernels::panel_rows;
    return keys_of(block) + panel * keys_panel_stride(block) + i % block_cols() * kernels::panel_rows +
           position % kernels::panel_rows;
  }
  Element* value(std::size_t position, std::size_t i) const {
    return values + i / kernels::panel_rows * values_panel_stride() + position * kernels::panel_rows +
           i % kernels::panel_rows;
  }

  operator KvPanels<const Element>() const requires(!std::is_const_v<Element>) {
    return {keys, values, key_scales, value_scales, head_dim, positions};
  }
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

  // Key and value, both [head_dim], of one position. f16 has nothing beyond 65504: what is larger becomes infinite. In
  // q8_0 each number is off by half its block's scale at most, which is the block's largest / 127, as
  // kernels::ActivationBlock says; a block in which a number is not finite becomes NaN as a whole.
  void put(const kernels::Table& kernels, std::size_t layer, std::size_t kv_head, std::size_t position,
           const float* key, const float* value);

  using Panels = std::variant<KvPanels<const float>, KvPanels<const F16>, KvPanels<const std::int8_t>>;
  Panels panels(std::size_t layer, std::size_t kv_head) const;

  // Where everything lies that the positions filled take, keys in whole panels: what there is to store. For each layer
  // and kv head, keys and values, and behind both their scales, in the order of KvPanels.
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
  // All [layer][kv_head][what KvPanels says].
  template <class Element>
  struct Storage {
    std::unique_ptr<Element, Free> keys;
    std::unique_ptr<Element, Free> values;
    std::unique_ptr<float, Free> key_scales;
    std::unique_ptr<float, Free> value_scales;
  };
  bool take_memory();
  template <class Element>
  bool take_memory_as();
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
  std::variant<Storage<float>, Storage<F16>, Storage<std::int8_t>> storage_;
};

}  // namespace minimind
