#pragma once

// Included by the products of AMX only: the shapes of its tiles.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

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

}  // namespace
}  // namespace minimind::kernels
