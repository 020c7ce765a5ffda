#pragma once

// Included by kernels-inl.h only: products of float weights, in f32 arithmetic. A row's sum runs over the columns in
// order, one fma at a time, regardless of the tile, so that a batch gives bit for bit the results of single tokens.

#include <cstring>
#include <type_traits>

#include "runtime/kernels/simd-inl.h"

namespace minimind::kernels {
namespace {

// How many panels and tokens a register tile spans: accumulators, one column of weights and one broadcast must fit in
// the 32 registers of AVX-512 and NEON or the 16 of the others.
#if defined(__AVX512F__)
constexpr std::size_t tile_panels = 2, tile_tokens = 12;
#elif defined(__AVX2__)
constexpr std::size_t tile_panels = 1, tile_tokens = 6;
#elif defined(__aarch64__)
constexpr std::size_t tile_panels = 1, tile_tokens = 5;
#else
constexpr std::size_t tile_panels = 1, tile_tokens = 2;
#endif
// With few tokens, several panels hide the latency of fma and share the values read of x. target_sums: accumulators in
// total; most_streams: panels at most.
constexpr std::size_t target_sums = parts == 1 ? 24 : parts == 2 ? 8 : 4, most_streams = 4;

constexpr std::size_t panels_for(std::size_t tokens) {
  const std::size_t panels = target_sums / (tokens * parts);
  return panels < 1 ? 1 : panels > most_streams ? most_streams : panels;
}

// At most this many columns of a tile's panels are widened to f32 at once: 48 KB, which stays in the nearest caches for
// all tokens. With fewer columns, sums would go to memory and back more often.
constexpr std::size_t slab_cols = 768 / tile_panels;

constexpr std::size_t line_floats = 64 / sizeof(float);  // in a cache line

// How a value is stored, and how 16 of them are loaded.
struct F32Encoding {
  using Element = float;
  using Stored = float;
  static Column load(const Stored* at) { return load_column(at); }
};
struct F16Encoding {
  using Element = F16;
  using Stored = std::uint16_t;
  static Column load(const Stored* at) { return load_f16(at); }
};
struct Bf16Encoding {
  using Element = Bf16;
  using Stored = std::uint16_t;
  static Column load(const Stored* at) { return load_bf16(at); }
};

template <class Encoding>
inline const typename Encoding::Stored* panel_of(const Matmul<typename Encoding::Element>& m, std::size_t panel) {
  return reinterpret_cast<const typename Encoding::Stored*>(m.panels) + panel * m.panel_stride;
}

// Stores up to 16 rows of y.
inline void store_rows(float* y, std::size_t rows, const Column& sum) {
  if (rows >= panel_rows) {
    for (std::size_t p = 0; p < parts; ++p) sum.part[p].store_unaligned(y + p * lanes);
    return;
  }
  float padded[panel_rows];
  for (std::size_t p = 0; p < parts; ++p) sum.part[p].store_unaligned(padded + p * lanes);
  std::memcpy(y, padded, rows * sizeof(float));
}

inline Column load_rows(const float* y, std::size_t rows) {
  if (rows >= panel_rows) return load_column(y);
  float padded[panel_rows] = {};
  std::memcpy(padded, y, rows * sizeof(float));
  return load_column(padded);
}

// Computes y for a few panels and tokens over the columns [first_col, last_col), all sums in registers. Adds to y
// unless first_col is 0. weights[i] points to column first_col of panel first_panel + i. With `ahead` it prefetches
// later weights, otherwise the next tokens.
template <class Encoding, std::size_t panels, std::size_t tokens, bool ahead, class Element>
inline void multiply_tile(const Matmul<Element>& m, const typename Encoding::Stored* const (&weights)[panels],
                          std::size_t first_col, std::size_t last_col, std::size_t first_panel,
                          std::size_t first_token) {
  const std::size_t row = first_panel * panel_rows;
  float* const y = m.y + first_token * m.y_stride + row;
  Column sum[panels][tokens];
  for (std::size_t i = 0; i < panels; ++i) {
    for (std::size_t t = 0; t < tokens; ++t) {
      const std::size_t at = i * panel_rows;
      if (first_col > 0) {
        sum[i][t] = load_rows(y + t * m.y_stride + at, m.rows - row - at);
      } else {
        for (std::size_t p = 0; p < parts; ++p) sum[i][t].part[p] = Floats(0.0f);
      }
    }
  }
  const float* const x = m.x + first_token * m.x_stride + first_col;
  for (std::size_t col = 0; col < last_col - first_col; ++col) {
    if (!ahead && col % line_floats == 0) {
      for (std::size_t t = 0; t < tokens; ++t) __builtin_prefetch(x + (t + tokens) * m.x_stride + col);
    }
    Column w[panels];
    for (std::size_t i = 0; i < panels; ++i) {
      if constexpr (ahead) fetch_ahead<64>(weights[i] + col * panel_rows);
      w[i] = Encoding::load(weights[i] + col * panel_rows);
    }
    for (std::size_t t = 0; t < tokens; ++t) {
      const Floats value(x[t * m.x_stride + col]);
      for (std::size_t i = 0; i < panels; ++i) {
        for (std::size_t p = 0; p < parts; ++p) {
          sum[i][t].part[p] = xsimd::fma(value, w[i].part[p], sum[i][t].part[p]);
        }
      }
    }
  }
  for (std::size_t i = 0; i < panels; ++i) {
    const std::size_t at = i * panel_rows;
    for (std::size_t t = 0; t < tokens; ++t) store_rows(y + t * m.y_stride + at, m.rows - row - at, sum[i][t]);
  }
}

// Multiplies the tokens from `token` on in tiles of `tokens`; the rest form one smaller tile.
template <std::size_t tokens, class Element, std::size_t panels>
inline void multiply_tokens(const Matmul<Element>& m, const float* const (&weights)[panels], std::size_t first_col,
                            std::size_t last_col, std::size_t panel, std::size_t token) {
  for (; token + tokens <= m.tokens; token += tokens) {
    multiply_tile<F32Encoding, panels, tokens, false>(m, weights, first_col, last_col, panel, token);
  }
  if constexpr (tokens > 1) {
    if (token < m.tokens) multiply_tokens<tokens - 1>(m, weights, first_col, last_col, panel, token);
  }
}

// Multiplies a few panels with every token. Weights of 16 bits are widened once for all tokens.
template <class Encoding, std::size_t panels>
inline void multiply_panels(const Matmul<typename Encoding::Element>& m, std::size_t panel) {
  constexpr bool is_f32 = std::is_same_v<Encoding, F32Encoding>;
  float widened[is_f32 ? 1 : panels][is_f32 ? 1 : slab_cols * panel_rows];
  const std::size_t slabs = (m.cols + slab_cols - 1) / slab_cols;
  for (std::size_t slab = 0; slab < slabs; ++slab) {
    const std::size_t first = m.cols * slab / slabs, last = m.cols * (slab + 1) / slabs;
    const float* weights[panels];
    for (std::size_t i = 0; i < panels; ++i) {
      const auto* const stored = panel_of<Encoding>(m, panel + i) + first * panel_rows;
      if constexpr (is_f32) {
        weights[i] = stored;
      } else {
        for (std::size_t at = 0; at < (last - first) * panel_rows; at += panel_rows) {
          store_rows(widened[i] + at, panel_rows, Encoding::load(stored + at));
        }
        weights[i] = widened[i];
      }
    }
    multiply_tokens<tile_tokens>(m, weights, first, last, panel, 0);
  }
}

template <class Encoding, std::size_t panels, std::size_t tokens>
inline void multiply_few_tokens(const Matmul<typename Encoding::Element>& m, std::size_t panel) {
  const typename Encoding::Stored* weights[panels];
  for (std::size_t i = 0; i < panels; ++i) weights[i] = panel_of<Encoding>(m, panel + i);
  multiply_tile<Encoding, panels, tokens, true>(m, weights, 0, m.cols, panel, 0);
}

// For tokens that fit in one tile: weights are used once and never stored as f32.
template <class Encoding, std::size_t tokens>
inline void multiply_in_one_tile(const Matmul<typename Encoding::Element>& m) {
  if constexpr (tokens > 1) {
    if (m.tokens < tokens) return multiply_in_one_tile<Encoding, tokens - 1>(m);
  }
  constexpr std::size_t panels = panels_for(tokens);
  std::size_t panel = m.first_panel;
  for (; panel + panels <= m.last_panel; panel += panels) multiply_few_tokens<Encoding, panels, tokens>(m, panel);
  for (; panel < m.last_panel; ++panel) multiply_few_tokens<Encoding, 1, tokens>(m, panel);
}

template <class Encoding>
void matmul(const Matmul<typename Encoding::Element>& m) noexcept {
  if (m.tokens <= tile_tokens) return multiply_in_one_tile<Encoding, tile_tokens>(m);
  std::size_t panel = m.first_panel;
  for (; panel + tile_panels <= m.last_panel; panel += tile_panels) multiply_panels<Encoding, tile_panels>(m, panel);
  for (; panel < m.last_panel; ++panel) multiply_panels<Encoding, 1>(m, panel);
}

}  // namespace
}  // namespace minimind::kernels
