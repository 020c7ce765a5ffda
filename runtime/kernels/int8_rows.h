#pragma once

#include <cstddef>
#include <cstdint>

// Products of rows of 8-bit integers that have one scale each, for weights of type q8_r: the sum over all columns is an
// exact integer, so that instructions that multiply whole matrices need not stop for scales.

namespace minimind::kernels {

// 64 bytes of weights or activations, as much as a row of AMX's tiles.
struct Int8Line {
  std::int8_t value[64];
};
inline constexpr std::size_t line_cols = sizeof(Int8Line);

// 2^31 / (127 * 128), rounded down: sums over more columns, with the bias of 128 that VNNI adds to weights, may not fit
// in 32 bits.
inline constexpr std::size_t most_int8_cols = 132'104;

// The first line of a row of activations, before ceil(cols / 64) lines of values from -127 to 127 (any if the scale is
// NaN). The last is padded with zeros.
struct Int8Row {
  float scale;       // as that of ActivationBlock
  std::int32_t sum;  // of the values
  std::byte padding[sizeof(Int8Line) - sizeof(float) - sizeof(std::int32_t)];
};
static_assert(sizeof(Int8Row) == sizeof(Int8Line));

// Lines of a panel: first the scales of its 16 rows, f32, then 16 lines for each 64 columns. Line i of these has
// columns 4i to 4i + 3 of each row, contiguous as in Q8Block.
inline constexpr std::size_t lines_per_tile = line_cols / 4;
constexpr std::size_t tile_count(std::size_t cols) {
  return cols / line_cols + (cols % line_cols != 0);
}
constexpr std::size_t lines_per_row(std::size_t cols) {
  return 1 + tile_count(cols);
}
constexpr std::size_t lines_per_panel(std::size_t cols) {
  return 1 + tile_count(cols) * lines_per_tile;
}

// y[token][row] = scale of the row * scale of the token * the sum of products, for the rows of panels [first_panel,
// last_panel). All instruction sets have the same bits.
struct Int8Matmul {
  const Int8Line* panels;  // [ceil(rows / 16)][lines_per_panel(cols)]
  std::size_t rows, cols;  // at most most_int8_cols; the last panel also has padding rows, which are not written
  std::size_t first_panel, last_panel;
  const Int8Line* x;   // [tokens][lines_per_row(cols)]
  std::size_t tokens;  // 1 at least
  float* y;            // [tokens][y_stride]; only the requested rows are written
  std::size_t y_stride;
  static constexpr bool continues = false;  // as Product::continues
};

// Columns that are mixed together, at most: a part of a row that starts at a multiple of it is restored alone.
inline constexpr std::size_t most_mixed_cols = 256;

struct Int8Products {
  void (*multiply)(const Int8Matmul&) noexcept;

  // Rounds a row of n values, weights or activations, to lines_per_row(n) lines. A single large value would take the
  // precision of all others. So the row is multiplied by an orthogonal matrix before, which spreads it and does not
  // change products of such rows: see int8_rows-inl.h.
  void (*round)(const float* x, std::size_t n, Int8Line* out) noexcept;

  // The reverse, but for what rounding lost.
  void (*restore)(const Int8Line* row, std::size_t n, float* out) noexcept;
};

}  // namespace minimind::kernels
