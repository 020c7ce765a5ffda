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

struct Bf16Kind {
  using Product = Bf16Matmul;
  using Sum = float;
  static TileOperands operands_of(const Product& m) {
    return {m.blocks, reinterpret_cast<const char*>(m.panels), m.blocks * sizeof(Bf16Block),
            reinterpret_cast<const char*>(m.x), m.x_stride * sizeof(Bf16)};
  }

  template <int sum, int x>
  static void add() {
    if constexpr (sum == 0 && x == 4) _tile_dpbf16ps(0, 4, 6);
    if constexpr (sum == 1 && x == 4) _tile_dpbf16ps(1, 4, 7);
    if constexpr (sum == 2 && x == 4) _tile_dpbf16ps(2, 4, 6);
    if constexpr (sum == 2 && x == 5) _tile_dpbf16ps(2, 5, 6);
    if constexpr (sum == 3 && x == 4) _tile_dpbf16ps(3, 4, 7);
    if constexpr (sum == 3 && x == 5) _tile_dpbf16ps(3, 5, 7);
  }

  [[gnu::always_inline]] static void write(const Product& m, std::size_t panel, std::size_t token, std::size_t tokens,
                                           const Sum (*sums)[panel_rows]) {
    const std::size_t row = panel * panel_rows;
    float* y = m.y + token * m.y_stride + row;
#pragma GCC unroll 8
    for (std::size_t t = 0; t < tokens; ++t, y += m.y_stride) store_rows(y, m.rows - row, _mm512_load_ps(sums[t]));
  }
};

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

void matmul(const Bf16Matmul& m) noexcept {
  return m.tokens == 1 ? matmul_one(m) : TileProduct<Bf16Kind>::multiply(m);
}

float multiply_add(std::size_t rounds) noexcept {
  alignas(64) static const Bf16 zeros[tile_rows * block_cols] = {};
  configure_sums(tile_rows);
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
