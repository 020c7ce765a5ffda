// Products of block types and of q8_r by AMX, for many tokens. Of blocks, one instruction multiplies 32 columns of a
// panel with those of 16 tokens. Sums of a block are exact, and are scaled and added in the order and with the
// roundings of AVX512_VNNI, which is faster for few tokens and has the same bits.

#include <cstring>

#include "runtime/kernels/amx-inl.h"
#include "runtime/kernels/blocks.h"
#include "runtime/kernels/kernels.h"
#include "runtime/kernels/tiles-inl.h"
#include "weights/tensor/dtype.h"

namespace minimind::kernels {
namespace {

// Weights and activations of a strip are next to each other and in the first two caches while they are multiplied.
constexpr std::size_t strip_blocks = 32, most_tiles = 4;
constexpr std::size_t least_tokens = 9;  // AVX512_VNNI is as fast for fewer

// A tile of a few tokens costs more than half of a full one. So AVX512_VNNI multiplies one or two that full tiles leave
// over, in the same pass as the last tile.
constexpr std::size_t most_left_over = 2;

constexpr std::size_t groups = block_cols / group_cols;

// Up to 16 tokens of a tile, and those left over. What is in the rows of tokens that a tile does not have is
// multiplied, but never used.
struct alignas(64) TokenStrip {
  std::int8_t quant[strip_blocks][tile_rows + most_left_over][block_cols];
  float scale[strip_blocks][tile_rows + most_left_over];
  std::int32_t sum[strip_blocks][tile_rows + most_left_over];  // of the quants
};

// Of one panel.
struct alignas(64) WeightStrip {
  const char* quants;        // of the first block: either in the matrix, or in `unpacked`
  std::size_t quant_stride;  // bytes from block to block
  alignas(64) float scale[strip_blocks][panel_rows];
  std::int8_t unpacked[strip_blocks][groups][panel_rows][group_cols];
};

// An odd number of tokens is followed by one whose products are 0, since multiply() adds two.
WRITES_FOR_TILES void copy_tokens(const ActivationBlock* x, std::size_t x_stride, std::size_t tokens,
                                  std::size_t blocks, TokenStrip& strip) {
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t b = 0; b < blocks; ++b) {
      const ActivationBlock& block = x[t * x_stride + b];
      std::memcpy(strip.quant[b][t], block.quant, sizeof block.quant);
      strip.scale[b][t] = block.scale;
      strip.sum[b][t] = block.sum;
    }
  }
  for (std::size_t b = 0; tokens % 2 > 0 && b < blocks; ++b) strip.scale[b][tokens] = 0;
}

template <class Block>
inline __m512 scale_of(const Block& block) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(block.scale)));
}
inline __m512 scale_of(const I8Block&) {
  return _mm512_set1_ps(1);
}

// Returns the signed weights of nibbles.
inline __m512i weights_of(const Q4Block&, __m512i nibbles) {
  return _mm512_sub_epi8(nibbles, _mm512_set1_epi8(Q4Block::centre));
}
inline __m512i weights_of(const Iq4NlBlock&, __m512i nibbles) {
  const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(iq4_nl_codes));
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(codes), nibbles);
}

template <class Block>
inline void unpack_quants(const Block& block, std::int8_t (&out)[groups][panel_rows][group_cols]) {
  const __m512i low_half = _mm512_set1_epi8(0x0F);
  for (std::size_t group = 0; group < groups / 2; ++group) {
    const __m512i both = _mm512_loadu_si512(block.nibbles[group]);
    const __m512i low = _mm512_and_si512(both, low_half);
    const __m512i high = _mm512_and_si512(_mm512_srli_epi16(both, 4), low_half);
    _mm512_store_si512(out[group], weights_of(block, low));
    _mm512_store_si512(out[group + groups / 2], weights_of(block, high));
  }
}

// Bytes stay where they are: to copy them to aligned memory takes longer than it saves.
template <class Block>
WRITES_FOR_TILES void unpack(const Block* blocks, std::size_t count, WeightStrip& strip) {
  for (std::size_t b = 0; b < count; ++b) _mm512_store_ps(strip.scale[b], scale_of(blocks[b]));
  if constexpr (requires { blocks->quant; }) {
    strip.quants = reinterpret_cast<const char*>(blocks->quant);
    strip.quant_stride = sizeof(Block);
  } else {
    for (std::size_t b = 0; b < count; ++b) unpack_quants(blocks[b], strip.unpacked[b]);
    strip.quants = reinterpret_cast<const char*>(strip.unpacked);
    strip.quant_stride = sizeof strip.unpacked[0];
  }
}

// What the tiles that multiply a strip of weights prefetch together: that of the next panel.
struct Ahead {
  const char* at;
  std::size_t block_bytes;
  std::size_t tiles;
};

// y of the tokens of a tile and the rows of a panel.
struct Output {
  float* y;
  std::size_t y_stride;
  std::size_t tokens;
  __mmask16 rows;
  bool continues;
};

// Tiles: 0 is sums, 1 is activations, 2 is weights.
void configure(std::size_t tokens) {
  TileShapes shapes;
  shapes.set(0, tokens, tile_line);
  shapes.set(1, tokens, block_cols);
  shapes.set(2, groups, tile_line);
  configure(shapes);
}

inline void load_tiles(const WeightStrip& weights, const TokenStrip& x, std::size_t b) {
  const char* const quants = weights.quants + b * weights.quant_stride;
  will_read<tile_rows * block_cols>(x.quant[b]);
  _tile_loadd(1, x.quant[b], block_cols);
  will_read<groups * tile_line>(quants);
  _tile_loadd(2, quants, tile_line);
}

inline void multiply_tiles() {
  _tile_zero(0);
  _tile_dpbssd(0, 1, 2);
}

using Sums = std::int32_t[tile_rows][panel_rows];

inline __m512 add_product(__m512i sums, __m512 weight_scale, float scale, __m512 total) {
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), _mm512_mul_ps(weight_scale, _mm512_set1_ps(scale)), total);
}

// The sums of a tile's tokens.
template <std::size_t tokens>
inline void add_block(const Sums& sums, const WeightStrip& weights, const TokenStrip& x, std::size_t b,
                      __m512 (&total)[tokens]) {
  const __m512 weight_scale = _mm512_load_ps(weights.scale[b]);
  constexpr std::size_t in_tile = smaller(tokens, tile_rows);
#pragma GCC unroll 16
  for (std::size_t t = 0; t < in_tile; ++t) {
    total[t] = add_product(_mm512_load_si512(sums[t]), weight_scale, x.scale[b][t], total[t]);
  }
}

// The sums of the tokens left over. The instruction multiplies unsigned by signed integers.
template <std::size_t tokens>
inline void multiply_left_over(const WeightStrip& weights, const TokenStrip& x, std::size_t b,
                               __m512 (&total)[tokens]) {
  constexpr int bias = 128;
  constexpr std::size_t count = tokens - tile_rows;
  __m512i sums[count];
  for (std::size_t i = 0; i < count; ++i) sums[i] = _mm512_set1_epi32(-bias * x.sum[b][tile_rows + i]);
  const char* const quants = weights.quants + b * weights.quant_stride;
#pragma GCC unroll 8
  for (std::size_t group = 0; group < groups; ++group) {
    const __m512i w = _mm512_xor_si512(_mm512_loadu_si512(quants + group * tile_line), _mm512_set1_epi8(-bias));
    for (std::size_t i = 0; i < count; ++i) {
      std::int32_t four;
      std::memcpy(&four, x.quant[b][tile_rows + i] + group * group_cols, sizeof four);
      sums[i] = _mm512_dpbusd_epi32(sums[i], w, _mm512_set1_epi32(four));
    }
  }
  const __m512 weight_scale = _mm512_load_ps(weights.scale[b]);
  for (std::size_t i = 0; i < count; ++i) {
    total[tile_rows + i] = add_product(sums[i], weight_scale, x.scale[b][tile_rows + i], total[tile_rows + i]);
  }
}

// Multiplies `blocks` blocks with up to `tokens` tokens. While a block's sums are computed, those of the block before
// are stored, and those before that are added: otherwise each would wait for the other.
template <std::size_t tokens>
void multiply(const WeightStrip& weights, const TokenStrip& x, std::size_t blocks, const Output& out, Ahead ahead,
              std::size_t tile) {
  __m512 total[tokens];
#pragma GCC unroll 20
  for (std::size_t t = 0; t < tokens; ++t) {
    const bool starts_at_y = out.continues && t < out.tokens;
    total[t] = starts_at_y ? _mm512_maskz_loadu_ps(out.rows, out.y + t * out.y_stride) : _mm512_setzero_ps();
  }
  alignas(64) Sums sums[2];
  load_tiles(weights, x, 0);
  multiply_tiles();
  std::size_t before_fetch = tile;  // blocks until this tile fetches one of its part
  for (std::size_t b = 0; b < blocks; ++b) {
    if (b + 1 < blocks) load_tiles(weights, x, b + 1);
    _tile_stored(0, sums[b % 2], tile_line);
    if (b + 1 < blocks) multiply_tiles();
    if (before_fetch == 0) {
      const char* const at = ahead.at + b * ahead.block_bytes;
      for (std::size_t i = 0; i < ahead.block_bytes; i += tile_line) __builtin_prefetch(at + i);
      before_fetch = ahead.tiles;
    }
    --before_fetch;
    if constexpr (tokens > tile_rows) multiply_left_over(weights, x, b, total);
    if (b > 0) add_block(sums[(b - 1) % 2], weights, x, b - 1, total);
  }
  add_block(sums[(blocks - 1) % 2], weights, x, blocks - 1, total);
#pragma GCC unroll 20
  for (std::size_t t = 0; t < tokens; ++t) {
    if (t < out.tokens) _mm512_mask_storeu_ps(out.y + t * out.y_stride, out.rows, total[t]);
  }
}

// The division of tokens among tiles: nearly evenly, or full tiles and a few tokens left over, which the last one
// takes.
struct Tiles {
  std::size_t count, tokens, left_over;

  explicit Tiles(std::size_t all) : count(all / tile_rows), tokens(all), left_over(all % tile_rows) {
    if (count > 0 && left_over <= most_left_over) {
      tokens = count * tile_rows;
    } else {
      count = parts_for(all, tile_rows);
      left_over = 0;
    }
  }
  std::size_t rows() const { return parts_for(tokens, count); }
  Part part(std::size_t tile) const {
    Part part = part_of(tokens, tile, count);
    if (tile + 1 == count) part.size += left_over;
    return part;
  }
};

template <class Block>
void multiply_part(const BlockMatmul<Block>& m, const Part& blocks, const Part& tokens) {
  WeightStrip weights;
  TokenStrip strips[most_tiles];
  const Tiles tiles(tokens.size);
  configure(tiles.rows());
  const ActivationBlock* const x = m.x + tokens.first * m.x_stride + blocks.first;
  for (std::size_t tile = 0; tile < tiles.count; ++tile) {
    const Part of_tile = tiles.part(tile);
    copy_tokens(x + of_tile.first * m.x_stride, m.x_stride, of_tile.size, blocks.size, strips[tile]);
  }
  for (std::size_t panel = m.first_panel; panel < m.last_panel; ++panel) {
    const Block* const first = m.panels + panel * m.panel_stride + blocks.first;
    unpack(first, blocks.size, weights);
    const Ahead ahead{reinterpret_cast<const char*>(first + m.panel_stride), sizeof(Block), tiles.count};
    const std::size_t rows = smaller(panel_rows, m.rows - panel * panel_rows);
    float* const y = m.y + tokens.first * m.y_stride + panel * panel_rows;
    for (std::size_t tile = 0; tile < tiles.count; ++tile) {
      const Part of_tile = tiles.part(tile);
      const Output out{y + of_tile.first * m.y_stride, m.y_stride, of_tile.size,
                       static_cast<__mmask16>((1u << rows) - 1), m.continues || blocks.first > 0};
      const auto use = [&](auto count) { multiply<count>(weights, strips[tile], blocks.size, out, ahead, tile); };
      if (of_tile.size > tile_rows) {
        with_constant<tile_rows + 1, tile_rows + most_left_over>(of_tile.size, use);
      } else {
        with_constant<(least_tokens + 1) / 2, tile_rows / 2>(
            (of_tile.size + 1) / 2, [&](auto half) { use(std::integral_constant<std::size_t, 2 * half>()); });
      }
    }
  }
}

// `of_vnni` are the products by AVX512_VNNI.
template <class Block, const auto& of_vnni>
void matmul(const BlockMatmul<Block>& m) noexcept {
  if (m.tokens < least_tokens) return static_cast<const ProductOf<Block>&>(of_vnni).multiply(m);
  const std::size_t blocks = m.cols / block_cols;
  const std::size_t strips = parts_for(blocks, strip_blocks),
                    chunks = parts_for(m.tokens, most_tiles * tile_rows + most_left_over);
  for (std::size_t strip = 0; strip < strips; ++strip) {
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      multiply_part(m, part_of(blocks, strip, strips), part_of(m.tokens, chunk, chunks));
    }
  }
  _tile_release();
}

// Of rows with one scale, in whole tiles of 64 columns, of which the products of blocks use half.
struct Int8Kind {
  using Product = Int8Matmul;
  using Sum = std::int32_t;
  static TileOperands operands_of(const Product& m) {
    return {tile_count(m.cols), reinterpret_cast<const char*>(m.panels + 1), lines_per_panel(m.cols) * sizeof(Int8Line),
            reinterpret_cast<const char*>(m.x + 1), lines_per_row(m.cols) * sizeof(Int8Line)};
  }

  template <int sum, int x>
  static void add() {
    if constexpr (sum == 0 && x == 4) _tile_dpbssd(0, 4, 6);
    if constexpr (sum == 1 && x == 4) _tile_dpbssd(1, 4, 7);
    if constexpr (sum == 2 && x == 4) _tile_dpbssd(2, 4, 6);
    if constexpr (sum == 2 && x == 5) _tile_dpbssd(2, 5, 6);
    if constexpr (sum == 3 && x == 4) _tile_dpbssd(3, 4, 7);
    if constexpr (sum == 3 && x == 5) _tile_dpbssd(3, 5, 7);
  }

  [[gnu::always_inline]] static void write(const Product& m, std::size_t panel, std::size_t token, std::size_t tokens,
                                           const Sum (*sums)[panel_rows]) {
    const std::size_t row = panel * panel_rows;
    const auto rows = static_cast<__mmask16>((1u << smaller(panel_rows, m.rows - row)) - 1);
    const __m512 scale = _mm512_loadu_ps(m.panels + panel * lines_per_panel(m.cols));
    const Int8Line* x = m.x + token * lines_per_row(m.cols);
    float* y = m.y + token * m.y_stride + row;
    const std::size_t x_stride = lines_per_row(m.cols);
#pragma GCC unroll 8
    for (std::size_t t = 0; t < tokens; ++t, x += x_stride, y += m.y_stride) {
      float x_scale;
      std::memcpy(&x_scale, x, sizeof x_scale);
      const __m512 factor = _mm512_mul_ps(scale, _mm512_set1_ps(x_scale));
      _mm512_mask_storeu_ps(y, rows, _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_load_si512(sums[t])), factor));
    }
  }
};

void multiply_rows(const Int8Matmul& m) noexcept {
  return m.tokens < least_tokens ? avx512vnni_blocks.rows.multiply(m) : TileProduct<Int8Kind>::multiply(m);
}

constexpr std::size_t tile_cols = 64;
float multiply_add(std::int8_t factor, std::size_t rounds) noexcept {
  alignas(64) std::int8_t ones[tile_rows * tile_cols], factors[tile_rows * tile_cols];
  std::memset(ones, 1, sizeof ones);
  std::memset(factors, factor, sizeof factors);
  TileShapes shapes;
  for (std::size_t tile = 0; tile < 6; ++tile) shapes.set(tile, tile_rows, tile_line);
  configure(shapes);
  clear_sums();
  will_read<sizeof factors>(factors);
  _tile_loadd(4, factors, tile_line);
  will_read<sizeof ones>(ones);
  _tile_loadd(5, ones, tile_line);
  for (std::size_t round = 0; round < rounds; ++round) {
    _tile_dpbssd(0, 4, 5);
    _tile_dpbssd(1, 4, 5);
    _tile_dpbssd(2, 4, 5);
    _tile_dpbssd(3, 4, 5);
  }
  alignas(64) Sums sums[4];
  _tile_stored(0, sums[0], tile_line);
  _tile_stored(1, sums[1], tile_line);
  _tile_stored(2, sums[2], tile_line);
  _tile_stored(3, sums[3], tile_line);
  _tile_release();
  float total = 0;
  for (const auto& of_tile : sums) {
    for (const auto& of_row : of_tile) {
      for (const std::int32_t sum : of_row) total += static_cast<float>(sum);
    }
  }
  return total;
}

}  // namespace

const MatrixProducts amxint8 = {
    .q8_0 = {matmul<Q8Block, avx512vnni>},
    .blocks = {{matmul<Q4Block, avx512vnni_blocks>},
               {matmul<Iq4NlBlock, avx512vnni_blocks>},
               {matmul<I8Block, avx512vnni_blocks>}},
    .multiply_rows = multiply_rows,
    .multiply_add = multiply_add,
    .multiply_adds_per_round = 4 * tile_rows * panel_rows * tile_cols,
};

}  // namespace minimind::kernels
