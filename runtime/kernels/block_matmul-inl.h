#pragma once

// Included by tables of kernels only: products of weights in blocks of 32 with 8-bit activations. A block's sum is an
// exact integer. Blocks are added in order, one fma each, regardless of the tile, so that a batch gives bit for bit the
// results of single tokens.

#include <cstdint>

#include "runtime/kernels/int8_dot-inl.h"
#include "runtime/kernels/kernels.h"
#include "runtime/kernels/matmul-inl.h"

namespace minimind::kernels {
namespace {

// How the weights of a block are taken into registers and multiplied.
template <class Block>
struct BlockWeights {
  using Dot = SignedDot;
  static constexpr bool is_packed = false;  // several in a byte
  static Group load(const Block& block, std::size_t group) { return load_group(block.quant[group]); }
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

// A tile is slower if the sums of a block and their totals, with weights and activations, do not fit in registers.
template <class Block>
struct BlockTile {
#if defined(__AVX512VNNI__)
  static constexpr std::size_t most_panels = 2, most_tokens = 5;
#elif defined(__AVX2__)
  static constexpr std::size_t most_panels = 1, most_tokens = 4;
#elif defined(__ARM_FEATURE_DOTPROD)
  static constexpr std::size_t most_panels = 1, most_tokens = 3;
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

  // A single token waits for memory, which delivers one panel after the other fastest. Packed weights take more
  // instructions per byte, whose latency a second panel hides.
  static constexpr std::size_t panels_for(std::size_t tokens) {
    return tokens == 1 && !BlockWeights<Block>::is_packed ? 1 : most_panels;
  }
  static bool one_panel_is_faster(const BlockMatmul<Block>&) {
    return false;
  }

  template <std::size_t panels, std::size_t tokens, Prefetch prefetch>
  static void multiply(const BlockMatmul<Block>& m, std::size_t first_panel, std::size_t first_token, TileIndex tile) {
    using Dot = typename BlockWeights<Block>::Dot;
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
#if defined(__AVX2__)
#pragma GCC unroll 8  // otherwise every group moves the sums between registers
#endif
      for (std::size_t group = 0; group < groups; ++group) {
        for (std::size_t i = 0; i < panels; ++i) {
          const Group w = BlockWeights<Block>::load(weights[i * m.panel_stride + b], group);
          for (std::size_t t = 0; t < tokens; ++t) {
            Dot::add(sums[i][t], w, x[t * m.x_stride + b].quant + group * group_cols);
          }
          // Otherwise products of several groups are added first, for which there are too few registers.
          for (typename Dot::Sums& of_token : sums[i]) of_token.pin();
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
};

template <class Block>
void block_matmul(const BlockMatmul<Block>& m) noexcept {
  multiply_in_tiles<BlockTile<Block>>(m);
}

}  // namespace
}  // namespace minimind::kernels
