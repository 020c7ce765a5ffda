#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "runtime/kernels/blocks.h"
#include "tests/support/stored.h"
#include "weights/tensor/block_codes.h"
#include "weights/tensor/dtype.h"

namespace minimind {

template <class... Blocks>
std::vector<DType> part_types_of(const kernels::ProductsOf<Blocks...>&) {
  std::vector<DType> types;
  ((kernels::PartBlock<Blocks> ? types.push_back(Blocks::stored_type) : void()), ...);
  return types;
}

// Types that are multiplied as bit planes of parts.
inline const std::vector<DType> part_types = part_types_of(kernels::BlockProducts{});

// Every integer of such a block is random, of all that the type allows; a part's minimum is that which makes its mean
// about 0. No value exceeds `largest` by much.
inline BlockCodes random_codes(DType type, std::mt19937& random, float largest) {
  const CodeRanges ranges = code_ranges(type);
  const auto any_of = [&](IntegerRange range) {
    return range.lowest + static_cast<int>(random() % static_cast<unsigned>(range.highest - range.lowest + 1));
  };
  const auto most = [](IntegerRange range) { return std::max(-range.lowest, range.highest); };
  BlockCodes codes{};
  const float scale = largest / static_cast<float>(most(ranges.codes) * most(ranges.scales));
  codes.scale = to_f16(scale);
  if (ranges.minima.highest > 0) {
    const float middle = 0.5f * static_cast<float>(ranges.codes.highest) * static_cast<float>(ranges.scales.highest);
    codes.minimum = to_f16(scale * middle / static_cast<float>(ranges.minima.highest));
  }
  const std::size_t elements = block_shape(type).elements;
  for (std::size_t part = 0; part < elements / ranges.part; ++part) {
    codes.part_scales[part] = static_cast<std::int8_t>(any_of(ranges.scales));
    codes.part_minima[part] =
        static_cast<std::uint8_t>(codes.part_scales[part] * ranges.minima.highest / std::max(1, ranges.scales.highest));
  }
  for (std::size_t i = 0; i < elements; ++i) {
    const int code = ranges.book.empty() ? any_of(ranges.codes) : ranges.book[random() % ranges.book.size()];
    codes.codes[i] = static_cast<std::int8_t>(code);
  }
  return codes;
}

// A matrix whose blocks are choose() as they are in a file.
template <class Choose>
StoredTensor matrix_of_blocks(DType type, std::size_t rows, std::size_t cols, const Choose& choose) {
  const BlockShape shape = block_shape(type);
  std::string bytes(rows * cols / shape.elements * shape.bytes, '\0');
  for (std::size_t at = 0; at < bytes.size(); at += shape.bytes) {
    pack_block(type, choose(), reinterpret_cast<std::byte*>(&bytes[at]));
  }
  return make_tensor(type, {rows, cols}, bytes);
}

inline StoredTensor random_blocks(DType type, std::size_t rows, std::size_t cols, unsigned seed, float largest = 1) {
  std::mt19937 random(seed);
  return matrix_of_blocks(type, rows, cols, [&] { return random_codes(type, random, largest); });
}

// The same blocks with all codes 0: the values are the minima that are subtracted.
inline StoredTensor minima_of_blocks(const StoredTensor& tensor) {
  const BlockShape shape = block_shape(tensor.dtype);
  const std::vector<std::byte> bytes = tensor.data.read_all();
  std::size_t at = 0;
  return matrix_of_blocks(tensor.dtype, tensor.shape[0], tensor.shape[1], [&] {
    BlockCodes codes;
    unpack_block(tensor.dtype, bytes.data() + at, codes);
    std::fill_n(codes.codes, shape.elements, std::int8_t{0});
    at += shape.bytes;
    return codes;
  });
}

}  // namespace minimind
