#pragma once

// Included by kernels-inl.h only: products of weights in blocks with activations of 8 bits. A block's sum is an exact
// integer; blocks are added up in order, one fma each, in whatever tile, so that a batch gives the bits of single
// tokens.

#include "runtime/kernels/matmul-inl.h"
#include "runtime/kernels/quants-inl.h"

namespace minimind::kernels {
namespace {

// How many panels and tokens have their sums of a block in registers.
#if defined(__AVX512VNNI__)
constexpr std::size_t block_tile_panels = 2, block_tile_tokens = 8, single_token_block_panels = 4;
#elif defined(__AVX2__)
constexpr std::size_t block_tile_panels = 1, block_tile_tokens = 4, single_token_block_panels = 1;
#elif defined(__aarch64__)
constexpr std::size_t block_tile_panels = 1, block_tile_tokens = 2, single_token_block_panels = 1;
#else
constexpr std::size_t block_tile_panels = 1, block_tile_tokens = 1, single_token_block_panels = 1;
#endif

constexpr std::size_t groups = block_cols / group_cols;

inline Group load_weights(const Q8Block& block, std::size_t group) {
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
#if defined(__AVX512VNNI__)
template <>
struct DotOf<Iq4NlBlock> {
  using Type = CodeDot;
};
#endif
template <>
struct DotOf<Q4Block> {
  using Type = UnsignedDot;
};

template <class Block, std::size_t panels, std::size_t tokens>
inline void multiply_block_tile(const BlockMatmul<Block>& m, std::size_t first_panel, std::size_t first_token) {
  using Dot = typename DotOf<Block>::Type;
  const std::size_t blocks = m.cols / block_cols, row = first_panel * panel_rows;
  const Block* const weights = m.panels + first_panel * blocks;
  const ActivationBlock* const x = m.x + first_token * m.x_stride;
  Column total[panels][tokens];
  for (auto& of_panel : total) {
    for (Column& column : of_panel) {
      for (std::size_t p = 0; p < parts; ++p) column.part[p] = Floats(0.0f);
    }
  }
  for (std::size_t b = 0; b < blocks; ++b) {
    if constexpr (tokens == 1) {
      for (std::size_t i = 0; i < panels; ++i) fetch_ahead<sizeof(Block)>(weights + i * blocks + b);
    }
    typename Dot::Sums sums[panels][tokens];
    for (std::size_t t = 0; t < tokens; ++t) {
      for (std::size_t i = 0; i < panels; ++i) sums[i][t] = Dot::start(x[t * m.x_stride + b].sum);
    }
#if defined(__AVX512VNNI__)
#pragma GCC unroll 8  // or every group moves the sums from registers to others
#endif
    for (std::size_t group = 0; group < groups; ++group) {
      for (std::size_t i = 0; i < panels; ++i) {
        const Group w = load_weights(weights[i * blocks + b], group);
        for (std::size_t t = 0; t < tokens; ++t) {
          Dot::add(sums[i][t], w, x[t * m.x_stride + b].quant + group * group_cols);
        }
      }
    }
    for (std::size_t i = 0; i < panels; ++i) {
      const Column scale = load_f16(weights[i * blocks + b].scale);
      for (std::size_t t = 0; t < tokens; ++t) {
        const Floats activation_scale(x[t * m.x_stride + b].scale);
        const Column sum = Dot::finish(sums[i][t]);
        for (std::size_t p = 0; p < parts; ++p) {
          total[i][t].part[p] = xsimd::fma(sum.part[p], scale.part[p] * activation_scale, total[i][t].part[p]);
        }
      }
    }
  }
  float* const y = m.y + first_token * m.y_stride + row;
  for (std::size_t i = 0; i < panels; ++i) {
    const std::size_t at = i * panel_rows;
    for (std::size_t t = 0; t < tokens; ++t) store_rows(y + t * m.y_stride + at, m.rows - row - at, total[i][t]);
  }
}

// Tokens from `token` on in tiles of `tokens`, those that are left over in one smaller tile.
template <std::size_t tokens, std::size_t panels, class Block>
inline void multiply_block_tokens(const BlockMatmul<Block>& m, std::size_t panel, std::size_t token) {
  for (; token + tokens <= m.tokens; token += tokens) multiply_block_tile<Block, panels, tokens>(m, panel, token);
  if constexpr (tokens > 1) {
    if (token < m.tokens) multiply_block_tokens<tokens - 1, panels>(m, panel, token);
  }
}

template <class Block>
void block_matmul(const BlockMatmul<Block>& m) noexcept {
  constexpr std::size_t most = single_token_block_panels;
  std::size_t panel = m.first_panel;
  if (m.tokens == 1) {
    for (; panel + most <= m.last_panel; panel += most) multiply_block_tile<Block, most, 1>(m, panel, 0);
    for (; panel < m.last_panel; ++panel) multiply_block_tile<Block, 1, 1>(m, panel, 0);
    return;
  }
  for (; panel + block_tile_panels <= m.last_panel; panel += block_tile_panels) {
    multiply_block_tokens<block_tile_tokens, block_tile_panels>(m, panel, 0);
  }
  for (; panel < m.last_panel; ++panel) multiply_block_tokens<block_tile_tokens, 1>(m, panel, 0);
}

void quantize(const float* x, std::size_t n, ActivationBlock* out) noexcept {
  for (std::size_t first = 0; first < n; first += block_cols, x += block_cols, ++out) {
    Floats most(0.0f), nothing(0.0f);
    for (std::size_t i = 0; i < block_cols; i += lanes) {
      const Floats values = load(x + i);
      most = xsimd::max(most, xsimd::abs(values));
      nothing = xsimd::fma(values, Floats(0.0f), nothing);  // NaN if a number is not finite
    }
    const float largest_value = largest_of(most);
    const bool tiny = largest_value < 1e-30f;
    out->scale = (tiny ? 0.0f : largest_value / 127.0f) + sum_of(nothing);
    const Floats by(tiny ? 0.0f : 127.0f / largest_value);
    for (std::size_t i = 0; i < block_cols; i += panel_rows) {
      Column values = load_column(x + i);
      for (std::size_t p = 0; p < parts; ++p) values.part[p] = values.part[p] * by;
      store_int8(values, out->quant + i);
    }
    std::int32_t sum = 0;
    for (const std::int8_t quant : out->quant) sum += quant;
    out->sum = sum;
  }
}

}  // namespace
}  // namespace minimind::kernels
