// Products of several tokens by the matrix product of bytes of ARMv8.6, which replace those of the dot product.

#define MINIMIND_ARCH xsimd::neon64
#include "runtime/kernels/block_matmul-inl.h"
#include "runtime/kernels/blocks.h"
#include "runtime/kernels/packed_groups-inl.h"

namespace minimind::kernels {
namespace {

// Eight columns of half of the rows: rows 2i and 2i + 1 of the half in two_rows[i].
struct EightColumns {
  int8x16_t two_rows[4];
  // `half` is 0 or 1.
  EightColumns(const Group& low, const Group& high, std::size_t half) {
    for (std::size_t i = 0; i < 2; ++i) {
      const int32x4_t a = vreinterpretq_s32_s8(low.rows[2 * half + i]),
                      b = vreinterpretq_s32_s8(high.rows[2 * half + i]);
      two_rows[2 * i] = vreinterpretq_s8_s32(vzip1q_s32(a, b));
      two_rows[2 * i + 1] = vreinterpretq_s8_s32(vzip2q_s32(a, b));
    }
  }
};

// The sums of these rows for two tokens. `smmla` adds the products of two rows with two tokens, each a sum over eight
// columns: row 2i with the first and the second token, then row 2i + 1.
struct PairSums {
  int32x4_t two_rows[4];
  static PairSums all(std::int32_t first, std::int32_t second) {
    const std::int32_t both[4] = {first, second, first, second};
    const int32x4_t start = vld1q_s32(both);
    return {{start, start, start, start}};
  }
  void add(const EightColumns& weights, const std::int8_t* first, const std::int8_t* second) {
    const int8x16_t activations = vcombine_s8(vld1_s8(first), vld1_s8(second));
    for (int i = 0; i < 4; ++i) two_rows[i] = vmmlaq_s32(two_rows[i], weights.two_rows[i], activations);
  }
  // Of rows 4i to 4i + 3 with the first or the second token.
  Floats to_floats(std::size_t i, std::size_t token) const {
    const int32x4_t a = two_rows[2 * i], b = two_rows[2 * i + 1];
    return vcvtq_f32_s32(token == 0 ? vuzp1q_s32(a, b) : vuzp2q_s32(a, b));
  }
};

// Adds the products of half of the rows of a block with several tokens, in pairs; of an odd number, the last token is a
// pair with itself.
template <std::size_t half, class Block, std::size_t tokens>
inline void add_products(const BlockMatmul<Block>& m, const Block& weights, const ActivationBlock* x,
                         Column (&total)[tokens]) {
  using Weights = BlockWeights<Block>;
  constexpr std::size_t pairs = (tokens + 1) / 2;
  const auto token = [&](std::size_t i) -> const ActivationBlock& { return x[smaller(i, tokens - 1) * m.x_stride]; };
  PairSums sums[pairs];
  for (std::size_t i = 0; i < pairs; ++i) {
    sums[i] = PairSums::all(-Weights::Dot::bias * token(2 * i).sum, -Weights::Dot::bias * token(2 * i + 1).sum);
  }
#pragma GCC unroll 1  // otherwise all weights are loaded first, for which there are too few registers
  for (std::size_t group = 0; group < groups; group += 2) {
    const EightColumns w(Weights::load(weights, group), Weights::load(weights, group + 1), half);
    for (std::size_t i = 0; i < pairs; ++i) {
      sums[i].add(w, token(2 * i).quant + group * group_cols, token(2 * i + 1).quant + group * group_cols);
    }
  }
  const ScaleOf<Block> scale(weights);
  for (std::size_t t = 0; t < tokens; ++t) {
    const Floats activation_scale(token(t).scale);
    for (std::size_t i = 0; i < parts / 2; ++i) {
      const std::size_t p = half * parts / 2 + i;
      total[t].part[p] = fma(sums[t / 2].to_floats(i, t % 2), scale.times(activation_scale, p), total[t].part[p]);
    }
  }
}

// Half of the rows at a time, so that sums, totals, weights and activations fit in registers.
template <class Block>
struct PairTile : BlockTile<Block> {
  static constexpr std::size_t most_panels = 1, most_tokens = 6, most_tokens_alone = most_tokens;
  static constexpr std::size_t panels_for(std::size_t) { return 1; }

  template <std::size_t panels, std::size_t tokens, Prefetch prefetch>
  static void multiply(const BlockMatmul<Block>& m, std::size_t panel, std::size_t first_token, TileIndex tile) {
    if constexpr (tokens == 1) return BlockTile<Block>::template multiply<1, 1, prefetch>(m, panel, first_token, tile);
    const std::size_t blocks = m.cols / block_cols, row = panel * panel_rows;
    const Block* const weights = m.panels + panel * m.panel_stride;
    const ActivationBlock* const x = m.x + first_token * m.x_stride;
    const Prefetcher<prefetch, 1, sizeof(Block), 16384> prefetcher(blocks, m.panel_stride);
    TileRows<1, tokens, BlockMatmul<Block>> rows(m, row, m.y + first_token * m.y_stride + row);
    Column total[1][tokens];
    rows.load_into(total);
    for (std::size_t b = 0; b < blocks; ++b) {
      if (b % tile.count == tile.index) prefetcher.fetch(weights + b, b);
      add_products<0>(m, weights[b], x + b, total[0]);
    }
    for (std::size_t b = 0; b < blocks; ++b) add_products<1>(m, weights[b], x + b, total[0]);
    rows.store(total);
  }
};

template <class Block>
void matmul(const BlockMatmul<Block>& m) noexcept {
  multiply_in_tiles<PairTile<Block>>(m);
}

constexpr std::size_t chains = 8;  // of sums, which hide latency

float multiply_add(std::int8_t factor, std::size_t rounds) noexcept {
  int8x16_t ones = vdupq_n_s8(1);
  const int8x16_t factors = vdupq_n_s8(factor);
  float total = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    int32x4_t sums[chains] = {};
    for (std::size_t step = 0; step < groups; ++step) {
      asm("" : "+w"(ones));  // otherwise the compiler would multiply once
      for (int32x4_t& sum : sums) sum = vmmlaq_s32(sum, ones, factors);
    }
    for (const int32x4_t& sum : sums) total += static_cast<float>(vaddvq_s32(sum));
  }
  return total;
}

}  // namespace

const MatrixProducts neon_i8mm = {
    .q8_0 = {matmul<Q8Block>},
    .blocks = {{matmul<Q4Block>}, {matmul<Iq4NlBlock>}, {matmul<I8Block>}},
    .multiply_rows = nullptr,
    .multiply_add = multiply_add,
    .multiply_adds_per_round = chains * groups * 4 * 8,  // 4 sums over 8 columns
};

}  // namespace minimind::kernels
