#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/engine/matrix.h"
#include "runtime/kernels/kernels.h"
#include "weights/tensor/dtype.h"
#include "weights/tensor/half.h"

namespace minimind {

// The type of keys and values in the cache: exact, or rounded, in half or little more than a quarter of the memory.
enum class KvType { f32, f16, q8_0 };
inline constexpr KvType kv_types[] = {KvType::f32, KvType::f16, KvType::q8_0};

constexpr std::string_view name_of(KvType type) {
  return type == KvType::f32 ? "f32" : type == KvType::f16 ? "f16" : "q8_0";
}

// The keys and values of one kv head of one layer, laid out as the weights of two products (see kernels::Matmul): q Kᵀ,
// in which positions are rows, and scores V, in which positions are columns. Element is float or F16.
template <class Element>
struct KvPanels {
  Element* keys;    // [positions / 16][head_dim][16 positions]
  Element* values;  // [head_dim / 16, rounded up][positions][16 values of the head]
  std::size_t head_dim;
  std::size_t positions;  // the capacity: a multiple of 32

  std::size_t values_panel_stride() const { return kernels::panel_rows * positions; }

  // key() returns element i of a position's key; element i + 1 is panel_rows further. value() returns element i of its
  // value; the elements up to the next multiple of panel_rows follow it.
  Element* key(std::size_t position, std::size_t i) const {
    return keys + (position / kernels::panel_rows * head_dim + i) * kernels::panel_rows +
           position % kernels::panel_rows;
  }
  Element* value(std::size_t position, std::size_t i) const {
    return values + i / kernels::panel_rows * values_panel_stride() + position * kernels::panel_rows +
           i % kernels::panel_rows;
  }
};

// In q8_0, for kernels::BlockMatmul. The key and the value of each position are rounded in blocks of 32 elements of the
// head that share a scale. In scores V, where positions are columns, no block of weights can hold these scales, so they
// are multiplied into the scores.
template <>
struct KvPanels<std::int8_t> {
  kernels::Q8Block* keys;    // [positions / 16][blocks()], of 16 positions and 32 values of the head each
  kernels::I8Block* values;  // [head_dim / 16, rounded up][positions / 32], of 16 values and 32 positions each
  F16* value_scales;         // [blocks()][positions]
  std::size_t head_dim;
  std::size_t positions;  // the capacity: a multiple of 32

  std::size_t blocks() const { return kernels::block_count(head_dim); }
  std::size_t width(std::size_t block) const {
    return std::min(kernels::block_cols, head_dim - block * kernels::block_cols);
  }
  std::size_t values_panel_stride() const { return positions / kernels::block_cols; }

  kernels::Q8Block& key_block(std::size_t position, std::size_t block) const {
    return keys[position / kernels::panel_rows * blocks() + block];
  }
  std::int8_t* key(std::size_t position, std::size_t i) const {
    const std::size_t col = i % kernels::block_cols;
    return &key_block(position, i / kernels::block_cols)
                .quant[col / kernels::group_cols][position % kernels::panel_rows][col % kernels::group_cols];
  }
  kernels::I8Block* values_of(std::size_t block) const {
    return values + block * (kernels::block_cols / kernels::panel_rows) * values_panel_stride();
  }
  std::int8_t* value(std::size_t position, std::size_t i) const {
    const std::size_t panel = i / kernels::panel_rows, col = position % kernels::block_cols;
    return &values[panel * values_panel_stride() + position / kernels::block_cols]
                .quant[col / kernels::group_cols][i % kernels::panel_rows][col % kernels::group_cols];
  }
  F16* value_scales_of(std::size_t block) const { return value_scales + block * positions; }
};

// What keys and values have in common in all layers of a model.
struct KvShape {
  KvType type;
  std::size_t layers;
  std::size_t kv_heads;
  std::size_t head_dim;

  // The bytes of one position's keys and values in all layers, which attending to it reads.
  std::size_t bytes_per_position() const;
};

// Memory for the keys (after RoPE) and values of `capacity` consecutive positions in every layer. The system provides a
// page only when one of its positions is first written.
class KvCells {
 public:
  // Throws Error with the required memory if it is unavailable.
  KvCells(const KvShape& shape, std::size_t capacity);

  const KvShape& shape() const { return shape_; }
  std::size_t capacity() const { return capacity_; }

  // Writes key and value, both [head_dim], of one position. In f16, values over 65504 become infinite. In q8_0 a step
  // is the largest magnitude of a block / 127, rounded to f16. A value is off by half a step at most, plus the rounding
  // of the step: 2^-11 of the value, more if the step is below 2^-14. A block becomes NaN as a whole if one of its
  // values is not finite or is over 127 * 65504.
  void put(const kernels::Table& kernels, std::size_t layer, std::size_t kv_head, std::size_t position,
           const float* key, const float* value);

  using Panels = std::variant<KvPanels<float>, KvPanels<F16>, KvPanels<std::int8_t>>;
  Panels panels(std::size_t layer, std::size_t kv_head) const;

  // The memory of one kv head of one layer for positions that start with a whole block of 32: the arrays of KvPanels,
  // in their order. Always as many parts.
  std::vector<std::span<std::byte>> parts(std::size_t layer, std::size_t kv_head, Range positions) const;

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  template <class Element>
  KvPanels<Element> panels_at(std::byte* head) const;

  KvShape shape_;
  std::size_t capacity_;
  std::size_t positions_;                    // capacity, rounded up to whole blocks of 32, which are also whole panels
  std::size_t head_bytes_;                   // of one kv head of one layer
  std::unique_ptr<std::byte, Free> memory_;  // has the cells, and room to align them
  std::byte* cells_ = nullptr;               // [layers][kv_heads][the arrays of KvPanels]
};

}  // namespace minimind
