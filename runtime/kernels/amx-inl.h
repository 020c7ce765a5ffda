#pragma once

// Included by the products of AMX only: the shapes of its tiles, and products whose sums stay in tiles for all columns.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/tiles-inl.h"

namespace minimind::kernels {
namespace {

constexpr std::size_t tile_rows = 16;  // at most
constexpr long tile_line = 64;         // bytes of a tile's row, at most

// The operand of LDTILECFG.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  void set(std::size_t tile, std::size_t height, std::size_t bytes) {
    rows[tile] = static_cast<std::uint8_t>(height);
    row_bytes[tile] = static_cast<std::uint16_t>(bytes);
  }
};

inline void configure(const TileShapes& shapes) {
  asm volatile("" : : "r"(&shapes) : "memory");  // GCC 12 takes only 8 bytes for the operand, and omits the others
  _tile_loadconfig(&shapes);
}

// Of tiles 0 to 3.
inline void clear_sums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

// GCC 12 does not know that a tile's instructions read memory. A function that writes what they read must be opaque to
// its callers: with -O1 the calls would be omitted. clang knows it, and has no such attribute.
#if defined(__clang__)
#define WRITES_FOR_TILES
#else
#define WRITES_FOR_TILES [[gnu::noipa]]
#endif

// Tells GCC that the next instruction of a tile reads these bytes.
template <std::size_t bytes>
inline void will_read(const void* at) {
  asm volatile("" : : "m"(*static_cast<const char(*)[bytes]>(at)));
}

// Products whose tiles 0 to 3 are sums and 4 and 5 are activations, of `tokens` rows each; 6 and 7 are weights.
inline void configure_sums(std::size_t tokens) {
  TileShapes shapes;
  for (std::size_t tile = 0; tile < 8; ++tile) shapes.set(tile, tile < 6 ? tokens : tile_rows, tile_line);
  configure(shapes);
}

// Where the tiles of such a product are, with strides in bytes.
struct TileOperands {
  std::size_t tiles;  // of a panel
  const char* weights;
  std::size_t weight_stride;  // from panel to panel
  const char* x;              // 64 bytes of a token for each tile
  std::size_t x_stride;       // from token to token

  const char* panel(std::size_t i) const { return weights + i * weight_stride; }
  const char* token(std::size_t i) const { return x + i * x_stride; }
};

// The instructions of such a product m, in whole tiles: `Kind` has
//   Product                        with first_panel, last_panel and tokens
//   operands_of(m)                 its TileOperands
//   add<sum, x>()                  adds the product of tile x with the weights, tile 6 for even sums and 7 for odd ones
//   store<sum>(m, panel, token, n) writes the sums of n tokens
template <class Kind>
class TileProduct {
 public:
  static void multiply(const typename Kind::Product& m) {
    std::size_t panel = m.first_panel;
    configure_sums(smaller(m.tokens, tile_rows));
    if (m.tokens <= tile_rows) {
      for (; panel + 4 <= m.last_panel; panel += 4) multiply_few<4>(m, panel);
      for (; panel < m.last_panel; ++panel) multiply_few<1>(m, panel);
    } else {
      multiply_all_tokens<2>(m, panel);
      multiply_all_tokens<1>(m, panel);
    }
    _tile_release();
  }

 private:
  using M = typename Kind::Product;
  static constexpr std::size_t tile_bytes = tile_rows * tile_line;

  // Up to 16 tokens with up to 4 panels, which hide the latency of an instruction. Each weight is used once, and
  // prefetched 8 KB ahead, in its panels and then in those that follow.
  template <std::size_t panels>
  static void multiply_few(const M& m, std::size_t panel) {
    const TileOperands of = Kind::operands_of(m);
    const std::size_t stride = of.weight_stride, ahead = smaller(of.tiles, 8 / panels), in_panel = of.tiles - ahead;
    const char *w = of.panel(panel), *x = of.x;
    const auto x_stride = static_cast<long>(of.x_stride);
    const auto fetch = [&](std::size_t tile, const char* at) {
      at += tile < in_panel ? ahead * tile_bytes : panels * stride - in_panel * tile_bytes;
      for (std::size_t line = 0; line < tile_bytes; line += tile_line) __builtin_prefetch(at + line);
    };
    clear_sums();
    for (std::size_t tile = 0; tile < of.tiles; ++tile, w += tile_bytes, x += tile_line) {
      fetch(tile, w);
      _tile_loadd(4, x, x_stride);
      _tile_loadd(6, w, tile_line);
      Kind::template add<0, 4>();
      if constexpr (panels > 1) {
        fetch(tile, w + stride);
        _tile_loadd(7, w + stride, tile_line);
        Kind::template add<1, 4>();
        fetch(tile, w + 2 * stride);
        _tile_loadd(6, w + 2 * stride, tile_line);
        Kind::template add<2, 4>();
        fetch(tile, w + 3 * stride);
        _tile_loadd(7, w + 3 * stride, tile_line);
        Kind::template add<3, 4>();
      }
    }
    Kind::template store<0>(m, panel, 0, m.tokens);
    if constexpr (panels > 1) {
      Kind::template store<1>(m, panel + 1, 0, m.tokens);
      Kind::template store<2>(m, panel + 2, 0, m.tokens);
      Kind::template store<3>(m, panel + 3, 0, m.tokens);
    }
  }

  // What a pass over some tokens prefetches with each tile: its part of the next panels.
  struct Ahead {
    const char* at;
    std::size_t lines;
  };

  // Two tiles of 16 tokens, which may overlap, with one or two panels.
  template <std::size_t panels>
  static void multiply_many(const M& m, std::size_t panel, std::size_t token, std::size_t other_token, Ahead ahead) {
    const TileOperands of = Kind::operands_of(m);
    const char *w = of.panel(panel), *x = of.token(token), *other_x = of.token(other_token);
    const auto x_stride = static_cast<long>(of.x_stride);
    clear_sums();
    for (std::size_t tile = 0; tile < of.tiles; ++tile, w += tile_bytes, x += tile_line, other_x += tile_line) {
      for (std::size_t i = 0; i < ahead.lines; ++i, ahead.at += tile_line) __builtin_prefetch(ahead.at, 0, 2);
      _tile_loadd(6, w, tile_line);
      _tile_loadd(4, x, x_stride);
      Kind::template add<0, 4>();
      _tile_loadd(5, other_x, x_stride);
      Kind::template add<2, 5>();
      if constexpr (panels > 1) {
        _tile_loadd(7, w + of.weight_stride, tile_line);
        Kind::template add<1, 4>();
        Kind::template add<3, 5>();
      }
    }
    Kind::template store<0>(m, panel, token, tile_rows);
    Kind::template store<2>(m, panel, other_token, tile_rows);
    if constexpr (panels > 1) {
      Kind::template store<1>(m, panel + 1, token, tile_rows);
      Kind::template store<3>(m, panel + 1, other_token, tile_rows);
    }
  }

  // The last tiles end at the last token. They repeat tokens of those before, which gives the same bits.
  template <std::size_t panels>
  static void multiply_all_tokens(const M& m, std::size_t& panel) {
    const TileOperands of = Kind::operands_of(m);
    const std::size_t last = m.tokens - tile_rows, passes = parts_for(m.tokens, 2 * tile_rows);
    const std::size_t lines = parts_for(panels * tile_rows, passes), part = lines * tile_line * of.tiles;
    for (; panel + panels <= m.last_panel; panel += panels) {
      const char* const next = of.panel(panel + panels);
      for (std::size_t pass = 0; pass < passes; ++pass) {
        const std::size_t token = pass * 2 * tile_rows;
        multiply_many<panels>(m, panel, smaller(token, last), smaller(token + tile_rows, last),
                              {next + pass * part, lines});
      }
    }
  }
};

// _tile_stored() by a number that is not a literal.
template <int tile>
inline void store_tile(void* to, long stride) {
  if constexpr (tile == 0) _tile_stored(0, to, stride);
  if constexpr (tile == 1) _tile_stored(1, to, stride);
  if constexpr (tile == 2) _tile_stored(2, to, stride);
  if constexpr (tile == 3) _tile_stored(3, to, stride);
}

}  // namespace
}  // namespace minimind::kernels
