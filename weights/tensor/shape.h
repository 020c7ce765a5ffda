#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "weights/tensor/dtype.h"

namespace minimind {

// Returns a size that a file states. Where memory has 32 bits, as in WebAssembly, a larger one is the largest, which
// nothing that fits into memory has, rather than its low bits.
constexpr std::size_t stated_size(std::uint64_t size) {
  return static_cast<std::size_t>(std::min<std::uint64_t>(size, std::numeric_limits<std::size_t>::max()));
}

// Returns a * b, or std::nullopt if the product overflows size_t.
constexpr std::optional<std::size_t> checked_product(std::size_t a, std::size_t b) {
  if (b != 0 && a > std::numeric_limits<std::size_t>::max() / b) return std::nullopt;
  return a * b;
}

// Returns the number of elements of a shape from a file: 1 for a scalar, std::nullopt on overflow. A shape like [2^60,
// 2^60, 0] counts as overflowing, so that no product of some of its sizes can overflow later.
constexpr std::optional<std::size_t> element_count(std::span<const std::size_t> shape) {
  std::size_t product_of_non_zero = 1;
  bool empty = false;
  for (const std::size_t size : shape) {
    empty = empty || size == 0;
    const auto product = checked_product(product_of_non_zero, size == 0 ? 1 : size);
    if (!product) return std::nullopt;
    product_of_non_zero = *product;
  }
  return empty ? 0 : product_of_non_zero;
}

// Returns the bytes of such a tensor; std::nullopt if the count overflows, or if its rows (the last dimension) are not
// whole blocks.
constexpr std::optional<std::size_t> byte_count(std::span<const std::size_t> shape, DType dtype) {
  const auto elements = element_count(shape);
  const BlockShape block = block_shape(dtype);
  if (!elements || (block.elements > 1 && (shape.empty() || shape.back() % block.elements != 0))) return std::nullopt;
  return checked_product(*elements / block.elements, block.bytes);
}

}  // namespace minimind
