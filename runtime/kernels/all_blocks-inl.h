#pragma once

// Included by tables of kernels only: products of all block types besides q8_0 and of q8_r, and the peak speed of
// such products. Each instruction set's _blocks.cpp defines MINIMIND_ARCH, as its other files do, and MINIMIND_BLOCKS,
// the name of its products.

#include <cstdint>
#include <cstring>

#include "runtime/kernels/block_matmul-inl.h"
#include "runtime/kernels/blocks.h"
#include "runtime/kernels/int8_rows-inl.h"
#include "runtime/kernels/packed_groups-inl.h"
#include "runtime/kernels/part_matmul-inl.h"

namespace minimind::kernels {
namespace {

template <class Block>
constexpr auto block_product = block_matmul<Block>;
template <PartBlock Block>
constexpr auto block_product<Block> = part_matmul<Block>;

// For the peak speed of 8-bit products: independent sums of a panel's rows, which hide latency, one register each with
// AVX512_VNNI, two with AVX, four or eight without. And as many steps as fit in the 16 bits of a sum: 64 * 2 * 127 <
// 2^15.
#if defined(__AVX512VNNI__)
constexpr std::size_t int8_chains = 12;
#elif defined(__AVXVNNI__)
constexpr std::size_t int8_chains = 6;
#else
constexpr std::size_t int8_chains = 2;
#endif
constexpr std::size_t int8_steps = 64;
constexpr std::size_t int8_products_per_round = int8_steps * int8_chains * panel_rows * group_cols;

// Hides from the compiler that the weights do not change; otherwise it would multiply with them once.
inline void forget(Group& weights) {
#if defined(__AVX512VNNI__)
  asm("" : "+v"(weights));
#else
  for (auto& row : weights.rows) {
#if defined(__aarch64__)
    asm("" : "+w"(row));
#elif defined(__wasm__)
    asm volatile("" : : "r"(&row) : "memory");  // LLVM 19 has no vectors as operands here
#else
    asm("" : "+x"(row));
#endif
  }
#endif
}

// Unsigned weights require the fewest instructions per product.
using FastestDot = UnsignedDot<1, 0>;
float multiply_add_int8(std::int8_t factor, std::size_t rounds) noexcept {
  std::int8_t ones[panel_rows * group_cols], activations[group_cols];
  std::memset(ones, 1, sizeof ones);
  std::memset(activations, factor, sizeof activations);
  Group weights = load_group(ones);
  Floats total(0.0f);
  for (std::size_t round = 0; round < rounds; ++round) {
    FastestDot::Sums sums[int8_chains];
    for (auto& sum : sums) sum = FastestDot::start(0);
#pragma GCC unroll 8  // otherwise every step moves the sums between registers
    for (std::size_t step = 0; step < int8_steps; ++step) {
      for (auto& sum : sums) {
        forget(weights);
        FastestDot::add(sum, weights, activations);
      }
    }
    for (const auto& sum : sums) {
      const Column column = FastestDot::finish(sum);
      for (std::size_t p = 0; p < parts; ++p) total = total + column.part[p];
    }
  }
  return sum_of(total);
}

template <class... Blocks>
constexpr ProductsOf<Blocks...> products_for(const ProductsOf<Blocks...>&) {
  return {{block_product<Blocks>}...};
}

}  // namespace

const BlockProducts MINIMIND_BLOCKS = {
    products_for(BlockProducts{}), {block_matmul<I8Block>}, {int8_matmul, round_row, restore_row}, multiply_add_int8,
    int8_products_per_round,
};

}  // namespace minimind::kernels
