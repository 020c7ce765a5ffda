#pragma once

// Included by tables of kernels only: products of block-quantised weights with 8-bit activations. A block's sum is an
// exact integer. Blocks are added in order, one fma each, regardless of the tile, so that a batch gives bit for bit the
// results of single tokens.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/kernels/int8_dot-inl.h"
#include "runtime/kernels/kernels.h"
#include "runtime/kernels/matmul-inl.h"
#include "runtime/kernels/part_matmul-inl.h"
#include "weights/tensor/dtype.h"

namespace minimind::kernels {
namespace {

inline Group load_weights(const Q8Block& block, std::size_t group) {
  return load_group(block.quant[group]);
}

inline Group load_weights(const I8Block& block, std::size_t group) {
  return load_group(block.quant[group]);
}

inline Group load_nibbles(const NibbleBlock& block, std::size_t group) {
  return group < groups / 2 ? load_nibbles<false>(block.nibbles[group])
                            : load_nibbles<true>(block.nibbles[group - groups / 2]);
}

inline Group load_weights(const Q4Block& block, std::size_t group) {
  return load_nibbles(block, group);
}

inline Group load_weights(const Iq4NlBlock& block, std::size_t group) {
  return look_up(iq4_nl_codes, load_nibbles(block, group));
}

template <class Block>
struct DotOf {
  using Type = SignedDot;
};
template <>
struct DotOf<Iq4NlBlock> {
  using Type = CodeDot;
};
template <>
struct DotOf<Q4Block> {
  using Type = UnsignedDot<4, 8>;
};

// The factors of a block's sums: the scales of weights and activations.
template <class Block>
struct ScaleOf {
  Column scale;
  explicit ScaleOf(const Block& block) : scale(load_f16(block.scale)) {}
  Floats times(Floats activation_scale, std::size_t p) const { return scale.part[p] * activation_scale; }
};
template <>
struct ScaleOf<I8Block> {
  explicit ScaleOf(const I8Block&) {}
  Floats times(Floats activation_scale, std::size_t) const { return activation_scale; }
};

// The sums of one block and their totals must fit in registers, with room for weights and activations: a tile that
// leaves totals in memory is slower.
template <class Block>
struct BlockTile {
#if defined(__AVX512VNNI__)
  static constexpr std::size_t most_panels = 2, most_tokens = 5;
#elif defined(__AVX2__)
  static constexpr std::size_t most_panels = 1, most_tokens = 4;
#elif defined(__aarch64__)
  static constexpr std::size_t most_panels = 1, most_tokens = 2;
#else
  static constexpr std::size_t most_panels = 1, most_tokens = 1;
#endif
  // If each weight is used once, memory is the limit rather than totals outside of registers.
#if defined(__AVX512VNNI__)
  static constexpr std::size_t most_tokens_alone = 8;
#else
  static constexpr std::size_t most_tokens_alone = most_tokens;
#endif
  // Memory would be idle while a tile without prefetch multiplies.
  static constexpr std::size_t prefetching_tiles = SIZE_MAX;

  // A single token waits for memory, which delivers one panel after the other fastest. Nibbles take more instructions
  // per byte, whose latency a second panel hides.
  static constexpr std::size_t panels_for(std::size_t tokens) {
    return tokens == 1 && !std::is_base_of_v<NibbleBlock, Block> ? 1 : most_panels;
  }

  template <std::size_t panels, std::size_t tokens, Prefetch prefetch>
  static void multiply(const BlockMatmul<Block>& m, std::size_t first_panel, std::size_t first_token, TileIndex tile);
};

template <class Block>
template <std::size_t panels, std::size_t tokens, Prefetch prefetch>
inline void BlockTile<Block>::multiply(const BlockMatmul<Block>& m, std::size_t first_panel, std::size_t first_token,
                                       TileIndex tile) {
  using Dot = typename DotOf<Block>::Type;
  const std::size_t blocks = m.cols / block_cols, row = first_panel * panel_rows;
  const Block* const weights = m.panels + first_panel * m.panel_stride;
  const ActivationBlock* const x = m.x + first_token * m.x_stride;
  const Prefetcher<prefetch, panels, sizeof(Block), 16384> prefetcher(blocks, m.panel_stride);
  float* const y = m.y + first_token * m.y_stride + row;
  TileRows<panels, tokens, BlockMatmul<Block>> rows(m, row, y);
  Column total[panels][tokens];
  rows.load_into(total);
  std::size_t before_fetch = tile.index;  // blocks until this tile fetches one of its part
  for (std::size_t b = 0; b < blocks; ++b) {
    if (prefetch == Prefetch::ahead || before_fetch == 0) {
      for (std::size_t i = 0; i < panels; ++i) prefetcher.fetch(weights + i * m.panel_stride + b, b);
      before_fetch = tile.count;
    }
    --before_fetch;
    typename Dot::Sums sums[panels][tokens];
    for (std::size_t t = 0; t < tokens; ++t) {
      for (std::size_t i = 0; i < panels; ++i) sums[i][t] = Dot::start(x[t * m.x_stride + b].sum);
    }
#if defined(__AVX512VNNI__)
#pragma GCC unroll 8  // otherwise every group moves the sums between registers
#endif
    for (std::size_t group = 0; group < groups; ++group) {
      for (std::size_t i = 0; i < panels; ++i) {
        const Group w = load_weights(weights[i * m.panel_stride + b], group);
        for (std::size_t t = 0; t < tokens; ++t) {
          Dot::add(sums[i][t], w, x[t * m.x_stride + b].quant + group * group_cols);
        }
      }
    }
    for (std::size_t i = 0; i < panels; ++i) {
      const ScaleOf<Block> scale(weights[i * m.panel_stride + b]);
      for (std::size_t t = 0; t < tokens; ++t) {
        const Floats activation_scale(x[t * m.x_stride + b].scale);
        const Column sum = Dot::finish(sums[i][t]);
        for (std::size_t p = 0; p < parts; ++p) {
          total[i][t].part[p] = fma(sum.part[p], scale.times(activation_scale, p), total[i][t].part[p]);
        }
      }
    }
  }
  rows.store(total);
}

template <class Block>
void block_matmul(const BlockMatmul<Block>& m) noexcept {
  multiply_in_tiles<BlockTile<Block>>(m);
}

// For the peak speed of 8-bit products: independent sums of a panel's rows, which hide latency, one register each with
// VNNI, four or eight without. And as many steps as fit in the 16 bits of a sum: 64 * 2 * 127 < 2^15.
#if defined(__AVX512VNNI__)
constexpr std::size_t int8_chains = 12;
#else
constexpr std::size_t int8_chains = 2;
#endif
constexpr std::size_t int8_steps = 64;

// Hides from the compiler that the weights do not change; otherwise it would multiply with them once.
inline void forget(Group& weights) {
#if defined(__AVX512VNNI__)
  asm("" : "+v"(weights));
#else
  for (auto& row : weights.rows) {
#if defined(__aarch64__)
    asm("" : "+w"(row));
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

constexpr Int8Products int8_products = {
    .matmul_q8_0 = block_matmul<Q8Block>,
    .matmul_q4_0 = block_matmul<Q4Block>,
    .matmul_iq4_nl = block_matmul<Iq4NlBlock>,
    .matmul_q4_1 = part_matmul<Q41Block>,
    .matmul_q5_0 = part_matmul<Q50Block>,
    .matmul_q5_1 = part_matmul<Q51Block>,
    .matmul_q4_k = part_matmul<Q4KBlock>,
    .matmul_q5_k = part_matmul<Q5KBlock>,
    .matmul_q6_k = part_matmul<Q6KBlock>,
    .matmul_q2_k = part_matmul<Q2KBlock>,
    .matmul_q3_k = part_matmul<Q3KBlock>,
    .matmul_iq4_xs = part_matmul<Iq4XsBlock>,
    .matmul_i8 = block_matmul<I8Block>,
    .multiply_add = multiply_add_int8,
    .multiply_adds_per_round = int8_steps * int8_chains * panel_rows * group_cols,
};

}  // namespace
}  // namespace minimind::kernels
