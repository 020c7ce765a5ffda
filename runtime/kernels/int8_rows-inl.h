#pragma once

// Included by all_blocks-inl.h only: products of rows of 8-bit integers, and their rounding.
//
// Rows are mixed by a Hadamard matrix first, as in QuaRot (Ashkboos et al. 2024, arXiv:2404.00456): 16 columns of a row
// that are 16 apart become their sums and differences, divided by 4. Where fewer than 256 columns are left, 8, 4 or 2
// are mixed in this way, and less than 16 stay as they are. The distance of 16 makes every step an addition of whole
// registers, in the same order with all instruction sets.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/kernels/int8_dot-inl.h"
#include "runtime/kernels/int8_rows.h"
#include "runtime/kernels/matmul-inl.h"
#include "runtime/kernels/quantize-inl.h"

namespace minimind::kernels {
namespace {

constexpr std::size_t most_mixed = most_mixed_cols / panel_rows;
constexpr float inverse_root_of(std::size_t count) {
  return count == 16 ? 0.25f : count == 8 ? 0.35355339f : count == 4 ? 0.5f : count == 2 ? 0.70710678f : 1.0f;
}

// Mixes columns i, i + 16, i + 32 and so on, `count` each, for i from 0 to 15.
template <std::size_t count>
inline void mix(const float* x, float* out) {
  for (std::size_t at = 0; at < panel_rows; at += lanes) {
    Floats mixed[count];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < count; ++i) mixed[i] = load(x + i * panel_rows + at);
#pragma GCC unroll 4
    for (std::size_t step = 1; step < count; step *= 2) {
#pragma GCC unroll 16
      for (std::size_t i = 0; i < count; ++i) {
        if ((i & step) != 0) continue;
        const Floats a = mixed[i], b = mixed[i + step];
        mixed[i] = a + b;
        mixed[i + step] = a - b;
      }
    }
#pragma GCC unroll 16
    for (std::size_t i = 0; i < count; ++i) {
      (mixed[i] * Floats(inverse_root_of(count))).store_unaligned(out + i * panel_rows + at);
    }
  }
}

// Mixes the columns from `first` on, 16 * count at a time, and what they leave by smaller matrices. Calls use(first
// column, mixed values, number of values, a multiple of 16) for each group; zeros pad the last one.
template <std::size_t count = most_mixed, class Use>
inline void for_each_mixed(const float* x, std::size_t n, std::size_t first, const Use& use) {
  constexpr std::size_t size = count * panel_rows;
  float mixed[size];
  for (; first + size <= n; first += size) {
    mix<count>(x + first, mixed);
    use(first, mixed, size);
  }
  if constexpr (count > 1) {
    for_each_mixed<count / 2>(x, n, first, use);
  } else if (first < n) {
    std::memset(mixed, 0, sizeof mixed);
    std::memcpy(mixed, x + first, (n - first) * sizeof(float));
    use(first, mixed, size);
  }
}

inline Int8Row head_of(const Int8Line* row) {
  Int8Row head;
  __builtin_memcpy(&head, row, sizeof head);
  return head;
}

void round_row(const float* x, std::size_t n, Int8Line* out) noexcept {
  Floats most(0.0f), nothing(0.0f);
  for_each_mixed(x, n, 0, [&](std::size_t, const float* mixed, std::size_t size) {
    for (std::size_t i = 0; i < size; i += lanes) {
      const Floats values = load(mixed + i);
      most = xsimd::max(most, xsimd::abs(values));
      nothing = fma(values, Floats(0.0f), nothing);  // NaN if a value is not finite
    }
  });
  const float largest_value = largest_of(most);
  const bool tiny = largest_value < 1e-30f;
  const Floats by(tiny ? 0.0f : 127.0f / largest_value);
  Int8Row head{};
  head.scale = (tiny ? 0.0f : largest_value / 127.0f) + sum_of(nothing);
  auto* const values = reinterpret_cast<std::int8_t*>(out + 1);
  if (n % line_cols != 0) out[tile_count(n)] = {};
  for_each_mixed(x, n, 0, [&](std::size_t first, const float* mixed, std::size_t size) {
    for (std::size_t i = 0; i < size; i += panel_rows) {
      Column scaled = load_column(mixed + i);
      for (Floats& part : scaled.part) part = part * by;
      store_int8(scaled, values + first + i);
      head.sum += sum_of_half(values + first + i);
    }
  });
  std::memcpy(out, &head, sizeof head);
}

void restore_row(const Int8Line* row, std::size_t n, float* out) noexcept {
  const auto* const values = reinterpret_cast<const std::int8_t*>(row + 1);
  const float scale = head_of(row).scale;
  for (std::size_t i = 0; i < n; ++i) out[i] = scale * static_cast<float>(values[i]);
  for_each_mixed(out, n, 0, [&](std::size_t first, const float* mixed, std::size_t size) {
    std::memcpy(out + first, mixed, smaller(size, n - first) * sizeof(float));
  });
}

// Sums and one group of weights for each panel must fit in the registers.
struct Int8Tile {
#if defined(__AVX512VNNI__)
  static constexpr std::size_t most_panels = 2, most_tokens = 8;
#elif defined(__AVX2__)
  static constexpr std::size_t most_panels = 1, most_tokens = 4;
#elif defined(__ARM_FEATURE_DOTPROD)
  static constexpr std::size_t most_panels = 1, most_tokens = 5;
#elif defined(__aarch64__)
  static constexpr std::size_t most_panels = 1, most_tokens = 2;
#else
  static constexpr std::size_t most_panels = 1, most_tokens = 1;
#endif
  static constexpr std::size_t most_tokens_alone = most_tokens, prefetching_tiles = SIZE_MAX;

  // As BlockTile.
  static constexpr std::size_t panels_for(std::size_t tokens) {
    return tokens == 1 ? 1 : most_panels;
  }
  static bool one_panel_is_faster(const Int8Matmul&) {
    return false;
  }

  template <std::size_t panels, std::size_t tokens, Prefetch prefetch>
  static void multiply(const Int8Matmul& m, std::size_t first_panel, std::size_t first_token, TileIndex tile) {
    const std::size_t stride = lines_per_panel(m.cols), x_stride = lines_per_row(m.cols),
                      row = first_panel * panel_rows;
    const Int8Line* const weights = m.panels + first_panel * stride;
    const Int8Line* const x = m.x + first_token * x_stride;
    const Prefetcher<prefetch, panels, sizeof(Int8Line), 16384> prefetcher(stride, stride);
    SignedDot::Sums sums[panels][tokens];
#pragma GCC unroll 16
    for (std::size_t t = 0; t < tokens; ++t) {
#pragma GCC unroll 2
      for (std::size_t i = 0; i < panels; ++i) sums[i][t] = SignedDot::start(head_of(x + t * x_stride).sum);
    }
    // As in FloatTile: few pointers, in registers.
    const Int8Line* x_rows[(tokens + 2) / 3];
    for (std::size_t i = 0; i < (tokens + 2) / 3; ++i) x_rows[i] = x + 3 * i * x_stride;
    std::size_t before_fetch = tile.index;  // lines until this tile fetches one of its part
    for (std::size_t first = 1; first < stride; first += lines_per_tile) {
      for (const Int8Line*& of_three : x_rows) ++of_three;
      if (prefetch == Prefetch::ahead || before_fetch == 0) {
        for (std::size_t line = first; line < first + lines_per_tile; ++line) {
          for (std::size_t i = 0; i < panels; ++i) prefetcher.fetch(weights + i * stride + line, line);
        }
        before_fetch = tile.count;
      }
      --before_fetch;
#pragma GCC unroll 16
      for (std::size_t line = 0; line < lines_per_tile; ++line) {
#pragma GCC unroll 2
        for (std::size_t i = 0; i < panels; ++i) {
          const Group w = load_group(weights + i * stride + first + line);
#pragma GCC unroll 16
          for (std::size_t t = 0; t < tokens; ++t) {
            SignedDot::add(sums[i][t], w, x_rows[t / 3][t % 3 * x_stride].value + line * group_cols);
          }
          // As in BlockTile.
#pragma GCC unroll 16
          for (std::size_t t = 0; t < tokens; ++t) sums[i][t].pin();
        }
      }
    }
    TileRows<panels, tokens, Int8Matmul> rows(m, row, m.y + first_token * m.y_stride + row);
    Column total[panels][tokens];
#pragma GCC unroll 2
    for (std::size_t i = 0; i < panels; ++i) {
      const Column scale = load_column(reinterpret_cast<const float*>(weights + i * stride));
#pragma GCC unroll 16
      for (std::size_t t = 0; t < tokens; ++t) {
        const Floats x_scale(head_of(x + t * x_stride).scale);
        const Column sum = SignedDot::finish(sums[i][t]);
        for (std::size_t p = 0; p < parts; ++p) total[i][t].part[p] = sum.part[p] * (scale.part[p] * x_scale);
      }
    }
    rows.store(total);
  }
};

void int8_matmul(const Int8Matmul& m) noexcept {
  multiply_in_tiles<Int8Tile>(m);
}

}  // namespace
}  // namespace minimind::kernels
