// Products of bf16 by AVX512_BF16. One instruction adds two products to each of 16 sums: the one of the odd column,
// then that of the even column. A row's sum runs over the pairs of columns in order, regardless of the tile.

#include "runtime/kernels/bf16-inl.h"
#include "runtime/kernels/blocks.h"
#include "runtime/kernels/tiles-inl.h"

namespace minimind::kernels {
namespace {

constexpr std::size_t pairs = block_cols / 2;

struct Bf16Tile {
  static constexpr std::size_t most_panels = 2, most_tokens = 12;
  static bool one_panel_is_faster(const Bf16Matmul&) { return false; }
  // With few tokens, several panels hide the latency of an instruction.
  static constexpr std::size_t panels_for(std::size_t tokens) { return tokens >= 12 ? 2 : tokens >= 6 ? 3 : 4; }

  static constexpr std::size_t most_tokens_alone = most_tokens;
  static constexpr std::size_t prefetching_tiles = 1;

  template <std::size_t panels, std::size_t tokens, Prefetch prefetch>
  static void multiply(const Bf16Matmul& m, std::size_t first_panel, std::size_t first_token, TileIndex) {
    const std::size_t row = first_panel * panel_rows;
    const Bf16Block* const weights = m.panels + first_panel * m.blocks;
    const Bf16* const x = m.x + first_token * m.x_stride;
    const Prefetcher<prefetch, panels, 64> prefetcher(m.blocks * pairs, m.blocks * pairs);
    __m512 sum[panels][tokens];
    for (auto& of_panel : sum) {
      for (__m512& column : of_panel) column = _mm512_setzero_ps();
    }
    for (std::size_t b = 0; b < m.blocks; ++b) {
      for (std::size_t pair = 0; pair < pairs; ++pair) {
        __m512bh w[panels];
        for (std::size_t i = 0; i < panels; ++i) {
          const void* const at = weights[i * m.blocks + b].value[pair];
          prefetcher.fetch(at, b * pairs + pair);
          w[i] = (__m512bh)_mm512_loadu_si512(at);
        }
        for (std::size_t t = 0; t < tokens; ++t) {
          std::int32_t both;
          std::memcpy(&both, x + t * m.x_stride + b * block_cols + 2 * pair, sizeof both);
          __m512i value_bits = _mm512_set1_epi32(both);
#if defined(__clang__) && __clang_major__ < 18
          // Otherwise its pass VectorCombine calls itself until the stack ends.
          asm("" : "+v"(value_bits));
#endif
          const auto value = (__m512bh)value_bits;
          for (std::size_t i = 0; i < panels; ++i) sum[i][t] = _mm512_dpbf16_ps(sum[i][t], w[i], value);
        }
      }
    }
    float* const y = m.y + first_token * m.y_stride + row;
    for (std::size_t i = 0; i < panels; ++i) {
      const std::size_t at = i * panel_rows;
      for (std::size_t t = 0; t < tokens; ++t) store_rows(y + t * m.y_stride + at, m.rows - row - at, sum[i][t]);
    }
  }
};

void matmul(const Bf16Matmul& m) noexcept {
  multiply_in_tiles<Bf16Tile>(m);
}

constexpr std::size_t chains = 16;  // twelve leave the units idle where an instruction takes six cycles

float multiply_add(std::size_t rounds) noexcept {
  __m512 sums[chains];
  // All different; otherwise the compiler computes one of them and copies it.
  for (std::size_t chain = 0; chain < chains; ++chain) sums[chain] = _mm512_set1_ps(static_cast<float>(chain));
  const auto ones = (__m512bh)_mm512_set1_epi32(0x3F803F80);
  for (std::size_t round = 0; round < rounds; ++round) {
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, ones, ones);
  }
  __m512 total = sums[0];
  for (std::size_t chain = 1; chain < chains; ++chain) total = _mm512_add_ps(total, sums[chain]);
  return _mm512_reduce_add_ps(total);
}

}  // namespace

const Bf16Products avx512bf16 = {
    .name = "avx512bf16",
    .matmul = matmul,
    .round = round_to_bf16,
    .multiply_add = multiply_add,
    .multiply_adds_per_round = chains * panel_rows * 2,
};

}  // namespace minimind::kernels
