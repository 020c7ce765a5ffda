#pragma once

// Included by the products of AMX only: the shapes of its tiles, and products whose sums stay in tiles for all columns.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/blocks.h"
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

// Loads tile 4, 5, 6 or 7. One that is `passing` does not take the place of others in the first cache.
template <int tile, bool passing>
inline void load_tile(const char* from, std::size_t stride) {
  const auto bytes = static_cast<long>(stride);
  if constexpr (tile == 4 && passing) _tile_stream_loadd(4, from, bytes);
  if constexpr (tile == 4 && !passing) _tile_loadd(4, from, bytes);
  if constexpr (tile == 5 && passing) _tile_stream_loadd(5, from, bytes);
  if constexpr (tile == 5 && !passing) _tile_loadd(5, from, bytes);
  if constexpr (tile == 6 && passing) _tile_stream_loadd(6, from, bytes);
  if constexpr (tile == 6 && !passing) _tile_loadd(6, from, bytes);
  if constexpr (tile == 7 && passing) _tile_stream_loadd(7, from, bytes);
  if constexpr (tile == 7 && !passing) _tile_loadd(7, from, bytes);
}

// The instructions of such a product m, in whole tiles: `Kind` has
//   Product                          with first_panel, last_panel and tokens
//   Sum                              the type of a sum
//   operands_of(m)                   its TileOperands
//   add<sum, x>()                    adds x times weights to a sum: tile 6 to even sums, 7 to odd ones
//   write(m, panel, token, n, sums)  writes y of n tokens, from their sums
template <class Kind>
class TileProduct {
 public:
  static void multiply(const typename Kind::Product& m) { TileProduct(m).multiply_panels(); }

 private:
  static constexpr std::size_t tile_bytes = tile_rows * tile_line;
  static constexpr std::size_t rows_at_once = 8;  // of sums that are written
  // Streams of weights that are prefetched: the hardware follows several at once, each to the end of its page.
  static constexpr std::size_t streams = 4;

  explicit TileProduct(const typename Kind::Product& m) : m_(m), of_(Kind::operands_of(m)) {}

  void multiply_panels() {
    std::size_t panel = m_.first_panel;
    configure_sums(smaller(m_.tokens, tile_rows));
    if (m_.tokens <= tile_rows) {
      for (; panel + 4 <= m_.last_panel; panel += 4) multiply_few<4>(panel);
      for (; panel < m_.last_panel; ++panel) multiply_few<1>(panel);
    } else {
      multiply_all_tokens<2>(panel);
      multiply_all_tokens<1>(panel);
      write_rest();
    }
    _tile_release();
  }

  // Up to 16 tokens with up to 4 panels, which hide the latency of an instruction. Each weight is used once, and
  // prefetched 8 KB ahead, in its panels and then in those that follow.
  template <std::size_t panels>
  void multiply_few(std::size_t panel) {
    const std::size_t stride = of_.weight_stride, ahead = smaller(of_.tiles, 8 / panels), in_panel = of_.tiles - ahead;
    const char *w = of_.panel(panel), *x = of_.x;
    const auto x_stride = static_cast<long>(of_.x_stride);
    const auto fetch = [&](std::size_t tile, const char* at) {
      at += tile < in_panel ? ahead * tile_bytes : panels * stride - in_panel * tile_bytes;
      for (std::size_t line = 0; line < tile_bytes; line += tile_line) __builtin_prefetch(at + line);
    };
    clear_sums();
    for (std::size_t tile = 0; tile < of_.tiles; ++tile, w += tile_bytes, x += tile_line) {
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
    _tile_stored(0, sums_[0], tile_line);
    Kind::write(m_, panel, 0, m_.tokens, sums_[0]);
    if constexpr (panels > 1) {
      _tile_stored(1, sums_[1], tile_line);
      Kind::write(m_, panel + 1, 0, m_.tokens, sums_[1]);
      _tile_stored(2, sums_[2], tile_line);
      Kind::write(m_, panel + 2, 0, m_.tokens, sums_[2]);
      _tile_stored(3, sums_[3], tile_line);
      Kind::write(m_, panel + 3, 0, m_.tokens, sums_[3]);
    }
  }

  // What a pass over some tokens prefetches with each tile: its part of the next panels.
  struct Ahead {
    const char* at;
    std::size_t lines;         // of each stream
    std::size_t stream_bytes;  // from stream to stream
  };

  // Two tiles of 16 tokens, which may overlap, with one or two panels. `reuses_weights`: other tokens use the weights
  // next, so the tokens, which are used again only after them, are not to take the first cache; otherwise the reverse.
  template <std::size_t panels, bool reuses_weights>
  void multiply_many(std::size_t panel, std::size_t token, std::size_t other_token, Ahead ahead) {
    const char *w = of_.panel(panel), *x = of_.token(token), *other_x = of_.token(other_token);
    const std::size_t x_stride = of_.x_stride;
    clear_sums();
    for (std::size_t tile = 0; tile < of_.tiles; ++tile, w += tile_bytes, x += tile_line, other_x += tile_line) {
      for (std::size_t i = 0; i < ahead.lines; ++i, ahead.at += tile_line) {
        for (std::size_t s = 0; s < streams; ++s) __builtin_prefetch(ahead.at + s * ahead.stream_bytes, 0, 2);
      }
      load_tile<4, reuses_weights>(x, x_stride);
      load_tile<6, !reuses_weights>(w, tile_line);
      Kind::template add<0, 4>();
      if constexpr (panels > 1) {
        load_tile<7, !reuses_weights>(w + of_.weight_stride, tile_line);
        Kind::template add<1, 4>();
      }
      load_tile<5, reuses_weights>(other_x, x_stride);
      Kind::template add<2, 5>();
      if constexpr (panels > 1) Kind::template add<3, 5>();
      if (has_unwritten()) write_next();
    }
    write_rest();
    _tile_stored(0, sums_[0], tile_line);
    _tile_stored(2, sums_[2], tile_line);
    if constexpr (panels > 1) {
      _tile_stored(1, sums_[1], tile_line);
      _tile_stored(3, sums_[3], tile_line);
    }
    unwritten_ = {panel, panels, {token, other_token}, 0};
  }

  // The last tiles end at the last token. They repeat tokens of those before, which gives the same bits.
  template <std::size_t panels>
  void multiply_all_tokens(std::size_t& panel) {
    const std::size_t last = m_.tokens - tile_rows, passes = parts_for(m_.tokens, 2 * tile_rows);
    constexpr std::size_t all_lines = panels * tile_rows / streams;  // of a stream, for each tile
    const std::size_t lines = parts_for(all_lines, passes), bytes = tile_line * of_.tiles;
    for (; panel + panels <= m_.last_panel; panel += panels) {
      const char* const next = of_.panel(panel + panels);
      for (std::size_t pass = 0; pass < passes; ++pass) {
        const std::size_t token = pass * 2 * tile_rows, before = smaller(pass * lines, all_lines);
        const std::size_t first = smaller(token, last), second = smaller(token + tile_rows, last);
        const Ahead ahead{next + before * bytes, smaller(lines, all_lines - before), all_lines * bytes};
        if (passes > 1) {
          multiply_many<panels, true>(panel, first, second, ahead);
        } else {
          multiply_many<panels, false>(panel, first, second, ahead);
        }
      }
    }
  }

  bool has_unwritten() const { return unwritten_.next < 2 * unwritten_.panels * tile_rows; }

  [[gnu::always_inline]] void write_next() {
    const std::size_t nth = unwritten_.next / tile_rows, row = unwritten_.next % tile_rows;
    const std::size_t tile = unwritten_.panels == 1 ? 2 * nth : nth;
    Kind::write(m_, unwritten_.panel + tile % 2, unwritten_.token[tile / 2] + row, rows_at_once, sums_[tile] + row);
    unwritten_.next += rows_at_once;
  }

  void write_rest() {
    while (has_unwritten()) write_next();
  }

  const typename Kind::Product& m_;
  const TileOperands of_;
  // Of tiles 0 to 3. Those of multiply_many() are written to y while the next are computed, which would wait for it
  // otherwise: 0 and 2 are of the first of two panels, 1 and 3 of the second; 2 and 3 are of the other tokens.
  alignas(64) typename Kind::Sum sums_[4][tile_rows][panel_rows];
  struct {
    std::size_t panel, panels;
    std::size_t token[2];
    std::size_t next;  // row of the sums
  } unwritten_{};
};

}  // namespace
}  // namespace minimind::kernels
