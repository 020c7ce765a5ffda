#pragma once

// Included by kernels-inl.h only: products of float weights, in f32 arithmetic. A row's sum runs over the columns in
// order, one fma at a time, regardless of the tile, so that a batch gives bit for bit the results of single tokens.

#include <cstring>

#include "runtime/kernels/simd-inl.h"
#include "runtime/kernels/tiles-inl.h"

namespace minimind::kernels {
namespace {

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

// The rows of y of a tile's panels, or a copy of them if y has fewer rows, so that every sum is loaded and stored
// whole. Always inlined: sums that are passed to a function would be in memory during the whole product.
template <std::size_t panels, std::size_t tokens, class M>
class TileRows {
 public:
  // For tokens whose rows of y, from `row` on, are at `y`.
  [[gnu::always_inline]] TileRows(const M& m, std::size_t row, float* y)
      : y_(y), y_stride_(m.y_stride), rows_(smaller(m.rows - row, width)), continues_(m.continues) {
    if (rows_ == width) return;
    at_ = copy_;
    stride_ = width;
    if (!continues_) return;
    for (std::size_t t = 0; t < tokens; ++t) std::memcpy(copy_ + t * width, y_ + t * y_stride_, rows_ * sizeof(float));
  }

  // The sums start at 0, or at those over earlier columns.
  [[gnu::always_inline]] void load_into(Column (&sum)[panels][tokens]) const {
#pragma GCC unroll 32
    for (std::size_t t = 0; t < tokens; ++t) {
#pragma GCC unroll 4
      for (std::size_t i = 0; i < panels; ++i) {
        for (std::size_t p = 0; p < parts; ++p) {
          sum[i][t].part[p] = continues_ ? load(at_ + t * stride_ + i * panel_rows + p * lanes) : Floats(0.0f);
        }
      }
    }
  }

  [[gnu::always_inline]] void store(const Column (&sum)[panels][tokens]) {
#pragma GCC unroll 32
    for (std::size_t t = 0; t < tokens; ++t) {
#pragma GCC unroll 4
      for (std::size_t i = 0; i < panels; ++i) {
        for (std::size_t p = 0; p < parts; ++p) {
          sum[i][t].part[p].store_unaligned(at_ + t * stride_ + i * panel_rows + p * lanes);
        }
      }
    }
    if (rows_ == width) return;
    for (std::size_t t = 0; t < tokens; ++t) std::memcpy(y_ + t * y_stride_, copy_ + t * width, rows_ * sizeof(float));
  }

 private:
  static constexpr std::size_t width = panels * panel_rows;
  float* y_;
  std::size_t y_stride_, rows_;
  bool continues_;
  float* at_ = y_;
  std::size_t stride_ = y_stride_;
  float copy_[tokens * width];
};

// How many bytes ahead in each of several panels of f32, which are read as fast as memory gives them; twice in one.
constexpr std::size_t distance_in_f32_panel = 2048;

// Accumulators, one column of weights and one broadcast must fit in the 32 registers of AVX-512 and NEON or the 16 of
// the others.
template <class Encoding>
struct FloatTile {
#if defined(__AVX512F__)
  static constexpr std::size_t most_panels = 2, most_tokens = 14;
#elif defined(__AVX2__)
  static constexpr std::size_t most_panels = 1, most_tokens = 6;
#elif defined(__aarch64__)
  static constexpr std::size_t most_panels = 1, most_tokens = 5;
#else
  static constexpr std::size_t most_panels = 1, most_tokens = 2;
#endif
  // With few tokens, several panels hide the latency of fma and share the values read of x.
  static constexpr std::size_t panels_for(std::size_t tokens) {
    constexpr std::size_t target_sums = parts == 1 ? 28 : parts == 2 ? 8 : 4, most = 4;
    const std::size_t wanted = target_sums / (tokens * parts);
    return wanted < 1 ? 1 : wanted > most ? most : wanted;
  }

  static constexpr bool is_f32 = sizeof(typename Encoding::Stored) == 4;
  static constexpr std::size_t most_tokens_alone = is_f32 && parts == 1 ? 18 : most_tokens;
  // With few tokens, the weights of models too large for caches arrive fastest one panel after the other. Those of 16
  // bits take so many instructions that one panel alone would slow a thread down, unless three or more share what
  // memory gives.
  static bool one_panel_is_faster(const Matmul<typename Encoding::Element>& m) {
    const bool is_a_third = 3 * panel_rows * (m.last_panel - m.first_panel) <= m.rows + panel_rows;
    return m.tokens <= (is_f32 ? 6 : 2) && smaller(m.rows, m.cols) >= 384 && (is_f32 || is_a_third);
  }
  // Each of the first tiles fetches one of the next panels. If the first one fetched them all, memory would be idle
  // while the others multiply; parts of each panel arrive slower than whole panels.
  static constexpr std::size_t prefetching_tiles = most_panels;

  template <std::size_t panels, std::size_t tokens, Prefetch prefetch>
  static void multiply(const Matmul<typename Encoding::Element>& m, std::size_t first_panel, std::size_t first_token,
                       TileIndex tile) {
    const std::size_t row = first_panel * panel_rows;
    const typename Encoding::Stored* weights = panel_of<Encoding>(m, first_panel);
    const float* const x = m.x + first_token * m.x_stride;
    float* const y = m.y + first_token * m.y_stride + row;
    TileRows<panels, tokens, Matmul<typename Encoding::Element>> rows(m, row, y);
    Column sum[panels][tokens];
    rows.load_into(sum);
    constexpr std::size_t stored_size = sizeof *weights;
    constexpr std::size_t distance = is_f32 ? (panels > 1 ? panels : 2) * distance_in_f32_panel : prefetch_distance;
    const Prefetcher<prefetch, panels, panel_rows * stored_size, distance> prefetcher(m.cols,
                                                                                      m.panel_stride / panel_rows);
    constexpr std::size_t stored_columns = 64 / (panel_rows * stored_size);
    constexpr std::size_t columns_per_line = stored_columns > 0 ? stored_columns : 1;
    // A pointer to every third row of x, and a distance: more pointers would not be in registers.
    const std::size_t stride = m.x_stride;
    const float* x_rows[(tokens + 2) / 3];
    for (std::size_t i = 0; i < (tokens + 2) / 3; ++i) x_rows[i] = x + 3 * i * stride;
    constexpr bool fetches_one = prefetch == Prefetch::next_panels;
    for (std::size_t col = 0; col < m.cols; ++col) {
      if (col % columns_per_line == 0) {
#pragma GCC unroll 4
        for (std::size_t i = 0; i < (fetches_one ? 1 : panels); ++i) {
          prefetcher.fetch(weights + (fetches_one ? tile.index : i) * m.panel_stride, col);
        }
      }
      Column w[panels];
#pragma GCC unroll 4
      for (std::size_t i = 0; i < panels; ++i) w[i] = Encoding::load(weights + i * m.panel_stride);
      weights += panel_rows;
#pragma GCC unroll 32
      for (std::size_t t = 0; t < tokens; ++t) {
        const Floats value(x_rows[t / 3][t % 3 * stride]);
#pragma GCC unroll 4
        for (std::size_t i = 0; i < panels; ++i) {
          for (std::size_t p = 0; p < parts; ++p) {
            sum[i][t].part[p] = fma(value, w[i].part[p], sum[i][t].part[p]);
          }
        }
      }
      for (const float*& of_three : x_rows) ++of_three;
    }
    rows.store(sum);
  }
};

// How many columns are multiplied at once, so that a tile's part of x stays in the first cache next to the weights.
// Weights of f32 that are used once arrive so slowly that the second cache is fast enough for x, and in one piece they
// arrive faster.
template <class Encoding>
inline std::size_t columns_at_once(std::size_t tokens, std::size_t cols) {
  constexpr std::size_t first_cache_part = 24576 / sizeof(float), second_cache_part = 131072 / sizeof(float), few = 256;
  const bool used_once = FloatTile<Encoding>::is_f32 && tokens <= FloatTile<Encoding>::most_tokens_alone;
  return tokens * cols <= (used_once ? second_cache_part : first_cache_part) || cols < 2 * few ? cols : few;
}

template <class Encoding>
void matmul(const Matmul<typename Encoding::Element>& m) noexcept {
  Matmul<typename Encoding::Element> block = m;
  std::size_t first = 0;
  do {
    block.cols = columns_at_once<Encoding>(m.tokens, m.cols - first);
    block.panels = m.panels + first * panel_rows;
    block.x = m.x + first;
    block.continues = m.continues || first > 0;
    multiply_in_tiles<FloatTile<Encoding>>(block);
    first += block.cols;
  } while (first < m.cols);
}

}  // namespace
}  // namespace minimind::kernels
