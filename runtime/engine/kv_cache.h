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
#include "weights/model/config.h"
#include "weights/tensor/dtype.h"

namespace minimind {

// How keys and values are held: exactly, or rounded, in a half or little more than a quarter of the memory.
enum class KvType { f32, f16, q8_0 };

constexpr std::string_view name_of(KvType type) {
  return type == KvType::f32 ? "f32" : type == KvType::f16 ? "f16" : "q8_0";
}

// "f32", "f16" or "q8_0". Throws UsageError for anything else.
KvType parse_kv_type(const std::string& name);

// What one kv head of one layer has seen, laid out as the weights of two products, see kernels::Matmul: q K^T, in which
// positions are rows, and scores V, in which they are columns. Element is float or F16, or one of these const.
template <class Element>
struct KvPanels {
  Element* keys;    // [positions / 16][head_dim][16 positions]
  Element* values;  // [head_dim / 16, rounded up][positions][16 numbers of the head]
  std::size_t head_dim;
  std::size_t positions;  // that there is room for: a multiple of 32

  std::size_t values_panel_stride() const { return kernels::panel_rows * positions; }

  // Number i of a position's key, in front of the next one's by panel_rows, and of its value, in front of those up to
  // the next multiple of panel_rows.
  Element* key(std::size_t position, std::size_t i) const {
    return keys + (position / kernels::panel_rows * head_dim + i) * kernels::panel_rows +
           position % kernels::panel_rows;
  }
  Element* value(std::size_t position, std::size_t i) const {
    return values + i / kernels::panel_rows * values_panel_stride() + position * kernels::panel_rows +
           i % kernels::panel_rows;
  }

  operator KvPanels<const Element>() const requires(!std::is_const_v<Element>) {
    return {keys, values, head_dim, positions};
  }
};

// The same in q8_0, for kernels::BlockMatmul. Each position's key and value is rounded in blocks of 32 numbers of the
// head that share a scale. Where positions are columns, no block of weights can hold these scales: they are multiplied
// into the scores. Byte is std::int8_t or const std::int8_t.
template <class Byte>
requires std::is_same_v<std::remove_const_t<Byte>, std::int8_t>
struct KvPanels<Byte> {
  template <class T>
  using Held = std::conditional_t<std::is_const_v<Byte>, const T, T>;

  Held<kernels::Q8Block>* keys;    // [positions / 16][blocks()], of 16 positions and 32 numbers of the head each
  Held<kernels::I8Block>* values;  // [head_dim / 16, rounded up][positions / 32], of 16 numbers and 32 positions each
  Held<F16>* value_scales;         // [blocks()][positions]
  std::size_t head_dim;
  std::size_t positions;  // that there is room for: a multiple of 32

  std::size_t blocks() const { return kernels::block_count(head_dim); }
  std::size_t width(std::size_t block) const {
    return std::min(kernels::block_cols, head_dim - block * kernels::block_cols);
  }
  std::size_t values_panel_stride() const { return positions / kernels::block_cols; }

  Held<kernels::Q8Block>& key_block(std::size_t position, std::size_t block) const {
    return keys[position / kernels::panel_rows * blocks() + block];
  }
  Byte* key(std::size_t position, std::size_t i) const {
    const std::size_t col = i % kernels::block_cols;
    return &key_block(position, i / kernels::block_cols)
                .quant[col / kernels::group_cols][position % kernels::panel_rows][col % kernels::group_cols];
  }
  Held<kernels::I8Block>* values_of(std::size_t block) const {
    return values + block * (kernels::block_cols / kernels::panel_rows) * values_panel_stride();
  }
  Byte* value(std::size_t position, std::size_t i) const {
    const std::size_t panel = i / kernels::panel_rows, col = position % kernels::block_cols;
    return &values[panel * values_panel_stride() + position / kernels::block_cols]
                .quant[col / kernels::group_cols][i % kernels::panel_rows][col % kernels::group_cols];
  }
  Held<F16>* value_scales_of(std::size_t block) const { return value_scales + block * positions; }

  operator KvPanels<const Byte>() const requires(!std::is_const_v<Byte>) {
    return {keys, values, value_scales, head_dim, positions};
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
  // q8_0 each number is off by half a step at most, a step being its block's largest / 127, and by the rounding of that
  // step to f16, up to 127 times: by 2^-11 of the number, more where steps are below 2^-14. A block in which a number
  // is not finite, or beyond 127 times 65504, becomes NaN as a whole.
  void put(const kernels::Table& kernels, std::size_t layer, std::size_t kv_head, std::size_t position,
           const float* key, const float* value);

  using Panels = std::variant<KvPanels<const float>, KvPanels<const F16>, KvPanels<const std::int8_t>>;
  Panels panels(std::size_t layer, std::size_t kv_head) const;

  // Where everything lies that the positions filled take, in whole panels and blocks: what there is to store. For each
  // layer and kv head, what KvPanels has, in its order.
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
  };
  struct BlockStorage {
    std::unique_ptr<kernels::Q8Block, Free> keys;
    std::unique_ptr<kernels::I8Block, Free> values;
    std::unique_ptr<F16, Free> value_scales;
  };
  bool take_memory();
  template <class Element>
  bool take(Storage<Element>& storage) const;
  bool take(BlockStorage& storage) const;
  template <class Element>
  KvPanels<Element> panels_in(const Storage<Element>& storage, std::size_t head) const;
  KvPanels<std::int8_t> panels_in(const BlockStorage& storage, std::size_t head) const;

  KvType type_;
  std::size_t layers_;
  std::size_t kv_heads_;
  std::size_t head_dim_;
  std::size_t capacity_;
  std::size_t positions_;     // capacity, rounded up to whole blocks of 32, which are whole panels, too
  std::size_t value_panels_;  // that hold head_dim rows
  std::size_t size_ = 0;
  std::variant<Storage<float>, Storage<F16>, BlockStorage> storage_;
};

}  // namespace minimind
