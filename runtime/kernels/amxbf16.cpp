// Products of bf16 by AMX. One instruction multiplies up to 16 tokens of 32 columns with a block of weights: per token
// and row it adds the products of the even columns, those of the odd columns, and then both sums to the total. A row's
// total runs over the blocks in order, regardless of the other tokens. A single token is multiplied by AVX-512 with the
// same roundings, because that reads weights from memory faster.

#include "runtime/kernels/amx-inl.h"
#include "runtime/kernels/bf16-inl.h"
#include "runtime/kernels/blocks.h"
#include "runtime/kernels/tiles-inl.h"

namespace minimind::kernels {
namespace {

// Tiles 0 to 3 are sums and 4 and 5 are activations, of `tokens` rows each; 6 and 7 are weights.
void configure(std::size_t tokens) {
  TileShapes shapes;
  for (std::size_t tile = 0; tile < 8; ++tile) shapes.set(tile, tile < 6 ? tokens : tile_rows, tile_line);
  configure(shapes);
}

// Stores a tile of sums: `tokens` tokens from `token` on, rows of one panel. Tiles are numbered by constants.
template <int tile>
inline void store_tile(const Bf16Matmul& m, std::size_t panel, std::size_t token, std::size_t tokens) {
  const std::size_t row = panel * panel_rows;
  float* const y = m.y + token * m.y_stride + row;
  const bool whole = m.rows - row >= panel_rows;
  alignas(64) float padded[tile_rows][panel_rows];
  float* const to = whole ? y : padded[0];
  const long stride = whole ? static_cast<long>(m.y_stride * sizeof(float)) : tile_line;
  if constexpr (tile == 0) _tile_stored(0, to, stride);
  if constexpr (tile == 1) _tile_stored(1, to, stride);
  if constexpr (tile == 2) _tile_stored(2, to, stride);
  if constexpr (tile == 3) _tile_stored(3, to, stride);
  if (whole) return;
  for (std::size_t t = 0; t < tokens; ++t) store_rows(y + t * m.y_stride, m.rows - row, _mm512_load_ps(padded[t]));
}

// Flushes subnormal values to 0 while it lives, as AMX does.
class FlushSubnormals {
 public:
  FlushSubnormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | _MM_FLUSH_ZERO_ON | 0x40); }
  ~FlushSubnormals() { _mm_setcsr(before_); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  unsigned before_;
};

// The product of two bf16 is exact in f32: an fma rounds the sum, as AMX does.
template <std::size_t panels>
inline void multiply_one(const Bf16Matmul& m, std::size_t panel) {
  constexpr std::size_t pairs = block_cols / 2;
  const Prefetcher<Prefetch::ahead, panels, tile_line> prefetcher(m.blocks * pairs, m.blocks * pairs);
  const Bf16Block* w = m.panels + panel * m.blocks;
  const Bf16* x = m.x;
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000));
  __m512 total[panels];
  for (__m512& sum : total) sum = _mm512_setzero_ps();
  for (std::size_t b = 0; b < m.blocks; ++b, ++w, x += block_cols) {
    __m512 even[panels], odd[panels];
    for (std::size_t i = 0; i < panels; ++i) even[i] = odd[i] = _mm512_setzero_ps();
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      const __m512 x_even = _mm512_set1_ps(to_f32(x[2 * pair])), x_odd = _mm512_set1_ps(to_f32(x[2 * pair + 1]));
      for (std::size_t i = 0; i < panels; ++i) {
        const void* const at = w[i * m.blocks].value[pair];
        prefetcher.fetch(at, b * pairs + pair);
        const __m512i both = _mm512_loadu_si512(at);
        even[i] = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(both, 16)), x_even, even[i]);
        odd[i] = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(both, upper)), x_odd, odd[i]);
      }
    }
    for (std::size_t i = 0; i < panels; ++i) total[i] = _mm512_add_ps(total[i], _mm512_add_ps(even[i], odd[i]));
  }
  for (std::size_t i = 0; i < panels; ++i) {
    const std::size_t row = (panel + i) * panel_rows;
    store_rows(m.y + row, m.rows - row, total[i]);
  }
}

// Not inlined: the compiler could compute before the mode is set.
[[gnu::noinline]] void multiply_all_panels(const Bf16Matmul& m) {
  std::size_t panel = m.first_panel;
  for (; panel + 4 <= m.last_panel; panel += 4) multiply_one<4>(m, panel);
  for (; panel < m.last_panel; ++panel) multiply_one<1>(m, panel);
}

void matmul_one(const Bf16Matmul& m) {
  const FlushSubnormals flush;
  multiply_all_panels(m);
}

// Up to 16 tokens with up to 4 panels, which hide the latency of an instruction. Each weight is used once.
template <std::size_t panels>
inline void multiply_few(const Bf16Matmul& m, std::size_t panel) {
  const Prefetcher<Prefetch::ahead, panels, sizeof(Bf16Block)> prefetcher(m.blocks, m.blocks);
  const Bf16Block* w = m.panels + panel * m.blocks;
  const Bf16* x = m.x;
  const long x_line = static_cast<long>(m.x_stride * sizeof(Bf16));
  clear_sums();
  for (std::size_t b = 0; b < m.blocks; ++b, ++w, x += block_cols) {
    prefetcher.fetch(w, b);
    _tile_loadd(4, x, x_line);
    _tile_loadd(6, w, tile_line);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (panels > 1) {
      prefetcher.fetch(w + m.blocks, b);
      _tile_loadd(7, w + m.blocks, tile_line);
      _tile_dpbf16ps(1, 4, 7);
      prefetcher.fetch(w + 2 * m.blocks, b);
      _tile_loadd(6, w + 2 * m.blocks, tile_line);
      _tile_dpbf16ps(2, 4, 6);
      prefetcher.fetch(w + 3 * m.blocks, b);
      _tile_loadd(7, w + 3 * m.blocks, tile_line);
      _tile_dpbf16ps(3, 4, 7);
    }
  }
  store_tile<0>(m, panel, 0, m.tokens);
  if constexpr (panels > 1) {
    store_tile<1>(m, panel + 1, 0, m.tokens);
    store_tile<2>(m, panel + 2, 0, m.tokens);
    store_tile<3>(m, panel + 3, 0, m.tokens);
  }
}

// Two tiles of 16 tokens, which may overlap, with one or two panels.
template <std::size_t panels, Prefetch prefetch>
inline void multiply_many(const Bf16Matmul& m, std::size_t panel, std::size_t token, std::size_t other_token) {
  const Prefetcher<prefetch, panels, sizeof(Bf16Block)> prefetcher(m.blocks, m.blocks);
  const Bf16Block* w = m.panels + panel * m.blocks;
  const Bf16 *x = m.x + token * m.x_stride, *other_x = m.x + other_token * m.x_stride;
  const long x_line = static_cast<long>(m.x_stride * sizeof(Bf16));
  clear_sums();
  for (std::size_t b = 0; b < m.blocks; ++b, ++w, x += block_cols, other_x += block_cols) {
    for (std::size_t i = 0; i < panels; ++i) prefetcher.fetch(w + i * m.blocks, b);
    _tile_loadd(6, w, tile_line);
    _tile_loadd(4, x, x_line);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, other_x, x_line);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (panels > 1) {
      _tile_loadd(7, w + m.blocks, tile_line);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  store_tile<0>(m, panel, token, tile_rows);
  store_tile<2>(m, panel, other_token, tile_rows);
  if constexpr (panels > 1) {
    store_tile<1>(m, panel + 1, token, tile_rows);
    store_tile<3>(m, panel + 1, other_token, tile_rows);
  }
}

// The last tiles end at the last token. They repeat tokens of those before, which gives the same bits.
template <std::size_t panels>
inline void multiply_all_tokens(const Bf16Matmul& m, std::size_t& panel) {
  const std::size_t last = m.tokens - tile_rows;
  for (; panel + panels <= m.last_panel; panel += panels) {
    multiply_many<panels, Prefetch::next_panels>(m, panel, 0, last < tile_rows ? last : tile_rows);
    for (std::size_t token = 2 * tile_rows; token < m.tokens; token += 2 * tile_rows) {
      const std::size_t other = token + tile_rows;
      multiply_many<panels, Prefetch::none>(m, panel, token < last ? token : last, other < last ? other : last);
    }
  }
}

void matmul(const Bf16Matmul& m) noexcept {
  if (m.tokens == 1) return matmul_one(m);
  std::size_t panel = m.first_panel;
  configure(m.tokens < tile_rows ? m.tokens : tile_rows);
  if (m.tokens <= tile_rows) {
    for (; panel + 4 <= m.last_panel; panel += 4) multiply_few<4>(m, panel);
    for (; panel < m.last_panel; ++panel) multiply_few<1>(m, panel);
  } else {
    multiply_all_tokens<2>(m, panel);
    multiply_all_tokens<1>(m, panel);
  }
  _tile_release();
}

float multiply_add(std::size_t rounds) noexcept {
  alignas(64) static const Bf16 zeros[tile_rows * block_cols] = {};
  configure(tile_rows);
  clear_sums();
  _tile_loadd(4, zeros, tile_line);
  _tile_loadd(6, zeros, tile_line);
  for (std::size_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 6);
    _tile_dpbf16ps(2, 4, 6);
    _tile_dpbf16ps(3, 4, 6);
  }
  alignas(64) float total[tile_rows][panel_rows];
  _tile_stored(0, total, tile_line);
  _tile_release();
  return total[0][0];
}

}  // namespace

const Bf16Products amxbf16 = {
    .name = "amxbf16",
    .matmul = matmul,
    .round = round_to_bf16,
    .multiply_add = multiply_add,
    .multiply_adds_per_round = 4 * tile_rows * panel_rows * block_cols,
};

}  // namespace minimind::kernels
