#pragma once

// Included by all_blocks-inl.h only: products of block types whose quants are bit planes, in parts of 16 or 32
// columns that have a scale and perhaps a minimum each. Products of up to 256 columns, a strip, are added by
// themselves: first the minima, then the parts in order, one fma each, then their sum to that of the strips before. For
// a single token the quants are taken from their planes in registers. For several, a strip is unpacked once, and one
// function for many types multiplies it. The order is the same, so that a batch gives bit for bit the results of single
// tokens.

#include <cstring>
#include <type_traits>

#include "runtime/kernels/blocks.h"
#include "runtime/kernels/int8_dot-inl.h"
#include "runtime/kernels/matmul-inl.h"
#include "runtime/kernels/packed_groups-inl.h"
#include "runtime/kernels/tiles-inl.h"
#include "weights/tensor/dtype.h"

namespace minimind::kernels {
namespace {

// Stores up to 16 rows of y.
inline void store_rows(float* y, std::size_t rows, const Column& sum) {
  if (rows >= panel_rows) {
    for (std::size_t p = 0; p < parts; ++p) sum.part[p].store_unaligned(y + p * lanes);
    return;
  }
  float padded[panel_rows];
  for (std::size_t p = 0; p < parts; ++p) sum.part[p].store_unaligned(padded + p * lanes);
  std::memcpy(y, padded, rows * sizeof(float));
}

// Loads up to 16 rows of y.
inline Column load_rows(const float* y, std::size_t rows) {
  if (rows >= panel_rows) return load_column(y);
  float padded[panel_rows] = {};
  std::memcpy(padded, y, rows * sizeof(float));
  return load_column(padded);
}

constexpr std::size_t strip_blocks = 8;  // of 32 columns

// Moves the bits of one group of a plane to bit `to` of each byte, with other bits around them.
template <std::size_t bits>
inline Group shift_bits(const BitPlane<bits>& plane, std::size_t group, int to) {
  Group result = load_group(plane.bytes[group * bits / 8]);
  const int shift = static_cast<int>(group * bits % 8) - to;
  for_registers(
      [&](auto& bytes) {
        typedef std::uint16_t Words __attribute__((vector_size(sizeof bytes)));
        const Words words = (Words)bytes;
        bytes = (std::remove_reference_t<decltype(bytes)>)(shift >= 0 ? words >> shift : words << -shift);
      },
      result);
  return result;
}

// Bits `from` and up of each byte, `bits` of them.
template <class Register>
inline Register bit_mask(std::size_t bits, std::size_t from) {
  typedef std::uint8_t AllBytes __attribute__((vector_size(sizeof(Register))));
  const auto byte = static_cast<std::uint8_t>(((1 << bits) - 1) << from);
  return (Register)(AllBytes{} + byte);
}

template <std::size_t low_bits, std::size_t high_bits>
inline Group take_quants(const PlaneQuants<low_bits, high_bits>& quants, std::size_t group) {
  Group result = shift_bits(quants.low, group, 0);
  for_registers([](auto& low) { low &= bit_mask<std::remove_reference_t<decltype(low)>>(low_bits, 0); }, result);
  if constexpr (high_bits > 0) {
    Group shifted = shift_bits(quants.high, group, low_bits);
    for_registers(
        [](auto& low, const auto& high) {
          const auto mask = bit_mask<std::remove_reference_t<decltype(low)>>(high_bits, low_bits);
#if defined(__AVX512VNNI__)
          low = _mm512_ternarylogic_epi64(low, high, mask, 0xF8);  // as below, in one instruction
#else
          low |= high & mask;
#endif
        },
        result, shifted);
  }
  return result;
}

// Returns the unsigned quants of a group, or the codes, of the block's 32 columns i.
template <PartBlock Block>
inline Group load_weights(const Block& block, std::size_t i, std::size_t group) {
  const Group quants = take_quants(block.quants[i], group);
  if constexpr (HasCodes<Block>) return look_up(iq4_nl_codes, quants);
  return quants;
}

template <class Block>
struct PartDot {
  using Type = UnsignedDot<std::remove_extent_t<decltype(Block::quants)>::bits, Block::centre>;
};
template <HasCodes Block>
struct PartDot<Block> {
  using Type = CodeDot;
};

inline void add_scaled(Column& sum, const Column& column, Floats factor) {
  for (std::size_t p = 0; p < parts; ++p) sum.part[p] = fma(column.part[p], factor, sum.part[p]);
}

inline Column zero_column() {
  Column zero;
  for (Floats& part : zero.part) part = Floats(0.0f);
  return zero;
}

inline Column negative(const Column& column) {
  Column result;
  for (std::size_t p = 0; p < parts; ++p) result.part[p] = column.part[p] * Floats(-1.0f);
  return result;
}

// The scale and the minimum of part p. The products are exact: 11 by 8 bits.
template <class Block>
inline Column part_scale(const Block& block, const Column& scale, std::size_t p) {
  if constexpr (HasScalesOfParts<Block>) return product(scale, to_floats(load_bytes(block.part_scale[p])));
  if constexpr (HasNibblesOfParts<Block>)
    return product(scale, to_floats(load_bytes(block.part_scale_and_minimum[p]) & 0x0F));
  return scale;
}

// Without the block's minimum if parts have integers of their own.
template <class Block>
inline Column part_minimum(const Block& block, std::size_t p) {
  if constexpr (HasMinimaOfParts<Block>) return to_floats(load_bytes(block.part_minimum[p]));
  if constexpr (HasNibblesOfParts<Block>) return to_floats((load_bytes(block.part_scale_and_minimum[p]) >> 4) & 0x0F);
  return load_f16(block.minimum);
}

// What the sums of a strip's minima are multiplied by.
template <class Block>
inline Column minima_factor(const Block& block) {
  if constexpr (HasMinimaOfParts<Block> || HasNibblesOfParts<Block>) return negative(load_f16(block.minimum));
  Column minus_one;
  for (Floats& part : minus_one.part) part = Floats(-1.0f);
  return minus_one;
}

// The sum of the activations of the first or second part of a block, or of all of it.
template <std::size_t part_count>
inline std::int32_t part_sum(const ActivationBlock& x, std::size_t part) {
  if constexpr (part_count == 1) return x.sum;
  return part == 0 ? x.low_sum : x.sum - x.low_sum;
}

// The same times their scale: what a minimum is multiplied by.
template <std::size_t part_count>
inline float scaled_part_sum(const ActivationBlock& x, std::size_t part) {
  if constexpr (part_count == 1) return x.scaled_sum;
  return x.scale * static_cast<float>(part_sum<part_count>(x, part));
}

// The factors with which StripDot::start() subtracts `bias` times part_sum().
constexpr std::int32_t bias_factors(int bias, std::size_t part_count, std::size_t part) {
  const int of_sum = part_count == 1 || part == 1 ? -bias : 0, of_low_sum = part_count == 1 ? 0
                                                                            : part == 0     ? -bias
                                                                                            : bias;
  return (of_sum & 0xFFFF) | of_low_sum * 0x10000;
}

template <class Dot, std::size_t part_count>
inline typename Dot::Sums start_part(const ActivationBlock& x, std::size_t part) {
  if constexpr (!unsigned_weights) {
    return Dot::start(part_sum<part_count>(x, part));
  } else if constexpr (Dot::bias == 0) {
    return Dot::start(0);
  } else {
    return StripDot::start(x, bias_factors(Dot::bias, part_count, part));
  }
}

// The weights of up to 256 columns of a panel, as its blocks have them: one of 256, or several of 32.
template <class Block>
class PackedStrip {
 public:
  static constexpr std::size_t part_count = parts_of_32<Block>;

  explicit PackedStrip(const Block* first) : first_(first) {}

  // Of the 32 columns i.
  Group weights(std::size_t i, std::size_t group) const {
    return load_weights(block(i), i % blocks_of_32<Block>, group);
  }
  Column scale(std::size_t i, std::size_t part) const {
    return part_scale(block(i), load_f16(block(i).scale), i % blocks_of_32<Block> * part_count + part);
  }
  Column minimum(std::size_t i, std::size_t part) const {
    return part_minimum(block(i), i % blocks_of_32<Block> * part_count + part);
  }
  Column minima_factor() const { return kernels::minima_factor(*first_); }

 private:
  const Block& block(std::size_t i) const { return first_[i / blocks_of_32<Block>]; }

  const Block* first_;
};

inline void add_product(Column& sum, const Column& product, const Column& scale, float activation_scale) {
  const Floats factor(activation_scale);
  for (std::size_t p = 0; p < parts; ++p) {
    sum.part[p] = fma(product.part[p], scale.part[p] * factor, sum.part[p]);
  }
}

// The products of `blocks` blocks of 32 columns.
template <class Block, class EachBlock>
inline Column multiply_strip(const PackedStrip<Block>& strip, std::size_t blocks, const ActivationBlock* x,
                             const EachBlock& each_block) {
  using Dot = typename PartDot<Block>::Type;
  constexpr std::size_t part_count = parts_of_32<Block>, part_groups = groups / part_count;
  Column sum = zero_column();
  if constexpr (HasMinima<Block>) {
    for (std::size_t b = 0; b < blocks; ++b) {
      for (std::size_t part = 0; part < part_count; ++part) {
        add_scaled(sum, strip.minimum(b, part), Floats(scaled_part_sum<part_count>(x[b], part)));
      }
    }
    sum = product(sum, strip.minima_factor());
  }
  for (std::size_t b = 0; b < blocks; ++b) {
    each_block(b);
    for (std::size_t part = 0; part < part_count; ++part) {
      typename Dot::Sums products = start_part<Dot, part_count>(x[b], part);
#pragma GCC unroll 8
      for (std::size_t i = 0; i < part_groups; ++i) {
        const std::size_t group = part * part_groups + i;
        if (i > 0 && i % Dot::most_groups == 0) Dot::flush(products);
        Dot::add(products, strip.weights(b, group), x[b].quant + group * group_cols);
      }
      add_product(sum, Dot::finish(products), strip.scale(b, part), x[b].scale);
    }
  }
  return sum;
}

// The bytes of 32 columns.
template <class Block>
inline constexpr std::size_t bytes_of_32 = sizeof(Block) / blocks_of_32<Block>;

inline void prefetch(const char* at, std::size_t bytes) {
  for (std::size_t line = 0; line < bytes; line += 64) __builtin_prefetch(at + line);
}

// A single token: weights are used once, as they are packed.
template <class Block>
inline void multiply_single(const BlockMatmul<Block>& m, std::size_t panel) {
  constexpr std::size_t strip_elements = strip_blocks / blocks_of_32<Block>;
  constexpr std::size_t lead = 16384 / sizeof(Block);  // how many blocks ahead are prefetched
  const Block* const weights = m.panels + panel * m.panel_stride;
  const std::size_t row = panel * panel_rows, elements = m.cols / (blocks_of_32<Block> * block_cols);
  Column total = m.continues ? load_rows(m.y + row, m.rows - row) : zero_column();
  for (std::size_t first = 0; first < elements; first += strip_elements) {
    const char* const ahead = reinterpret_cast<const char*>(weights + first + lead);
    const auto prefetch_block = [&](std::size_t b) { prefetch(ahead + b * bytes_of_32<Block>, bytes_of_32<Block>); };
    const std::size_t blocks = smaller(strip_elements, elements - first) * blocks_of_32<Block>;
    const Column sum =
        multiply_strip(PackedStrip<Block>(weights + first), blocks, m.x + first * blocks_of_32<Block>, prefetch_block);
    for (std::size_t p = 0; p < parts; ++p) total.part[p] = total.part[p] + sum.part[p];
  }
  store_rows(m.y + row, m.rows - row, total);
}

// How many panels and tokens are multiplied at once: their sums must fit in registers. If one tile holds all tokens, it
// may have more: several tiles would load the weights again.
#if defined(__AVX512VNNI__)
constexpr std::size_t strip_panels = 2, strip_tokens = 5, strip_tokens_alone = 8;
#elif defined(__AVX2__)
constexpr std::size_t strip_panels = 1, strip_tokens = 4, strip_tokens_alone = 4;
#elif defined(__ARM_FEATURE_DOTPROD)
constexpr std::size_t strip_panels = 1, strip_tokens = 3, strip_tokens_alone = 3;
#elif defined(__aarch64__)
constexpr std::size_t strip_panels = 1, strip_tokens = 2, strip_tokens_alone = 2;
#else
constexpr std::size_t strip_panels = 1, strip_tokens = 1, strip_tokens_alone = 1;
#endif
constexpr bool has_single = strip_tokens > 1;  // a tile of one token would cost as much

struct StripTile {
  static constexpr std::size_t most_tokens = strip_tokens;
};

// The weights of up to 256 columns of each panel with a byte for each quant, for all types. Blocks of 32 columns with
// one part have it as their second one.
struct Strips {
  std::uint8_t quants[strip_panels][strip_blocks][groups][panel_rows][group_cols];
  float scales[strip_panels][strip_blocks][2][panel_rows];
  float minima[strip_panels][strip_blocks][2][panel_rows];
  float minima_factor[strip_panels][panel_rows];
  std::size_t blocks;
  const char* ahead[strip_panels];  // to be prefetched meanwhile
  std::size_t ahead_bytes;          // for each block of 32 columns
  bool two_parts, has_minima;
  std::int32_t bias_factors[2];  // of the parts; see StripDot
};

// Where their products go: rows[i] of panel i, to be written or added to.
struct StripOutput {
  float* y;  // [tokens][y_stride]
  std::size_t y_stride;
  std::size_t rows[strip_panels];  // 16, or less at the end of a matrix
  bool continues;
  bool first_tile;  // the one that prefetches
};

inline void store_column(const Column& column, float* at) {
  for (std::size_t p = 0; p < parts; ++p) column.part[p].store_unaligned(at + p * lanes);
}

template <class Block>
inline void unpack(const PackedStrip<Block>& packed, std::size_t panel, Strips& strips) {
  constexpr std::size_t part_count = parts_of_32<Block>;
  for (std::size_t b = 0; b < strips.blocks; ++b) {
#pragma GCC unroll 8
    for (std::size_t group = 0; group < groups; ++group) {
      Group weights = packed.weights(b, group);
      if constexpr (!unsigned_weights && Block::centre != 0) {  // else the sums start without it
        for_registers(
            [](auto& bytes) {
              typedef std::int8_t Integers __attribute__((vector_size(sizeof bytes)));
              const Integers centred = (Integers)bytes - static_cast<std::int8_t>(Block::centre);
              bytes = (std::remove_reference_t<decltype(bytes)>)centred;
            },
            weights);
      }
      store_group(weights, strips.quants[panel][b][group]);
    }
    for (std::size_t part = 0; part < part_count; ++part) {
      const std::size_t at = part + 2 - part_count;
      store_column(packed.scale(b, part), strips.scales[panel][b][at]);
      if constexpr (HasMinima<Block>) store_column(packed.minimum(b, part), strips.minima[panel][b][at]);
    }
  }
  if constexpr (HasMinima<Block>) store_column(packed.minima_factor(), strips.minima_factor[panel]);
}

// The sums that a tile starts with.
inline Column minima_sum(const Strips& strips, std::size_t panel, const ActivationBlock* x) {
  Column sum = zero_column();
  if (!strips.has_minima) return sum;
  for (std::size_t b = 0; b < strips.blocks; ++b) {
    const auto& minima = strips.minima[panel][b];
    if (strips.two_parts) {
      add_scaled(sum, load_column(minima[0]), Floats(scaled_part_sum<2>(x[b], 0)));
      add_scaled(sum, load_column(minima[1]), Floats(scaled_part_sum<2>(x[b], 1)));
    } else {
      add_scaled(sum, load_column(minima[1]), Floats(scaled_part_sum<1>(x[b], 0)));
    }
  }
  return product(sum, load_column(strips.minima_factor[panel]));
}

// For functions whose sums stay in registers only if they are inlined. GCC 12 decides so itself where that is fastest,
// and its products of many tokens take a tenth longer if it is told to.
#if defined(__clang__) || __GNUC__ >= 14
#define MINIMIND_INLINE [[gnu::always_inline]] inline
#else
#define MINIMIND_INLINE inline
#endif

// Half of 32 columns.
template <std::size_t tokens>
MINIMIND_INLINE void add_half(const Strips& strips, std::size_t b, std::size_t half, const ActivationBlock* x,
                              std::size_t x_stride, StripDot::Sums (&products)[strip_panels][tokens]) {
#pragma GCC unroll 4
  for (std::size_t i = 0; i < groups / 2; ++i) {
    const std::size_t group = half * groups / 2 + i;
    for (std::size_t panel = 0; panel < strip_panels; ++panel) {
      const Group w = load_group(strips.quants[panel][b][group]);
      for (std::size_t t = 0; t < tokens; ++t) {
        StripDot::add(products[panel][t], w, x[t * x_stride + b].quant + group * group_cols);
      }
      for (StripDot::Sums& of_token : products[panel]) of_token.pin();  // see BlockTile
    }
  }
}

template <std::size_t tokens>
MINIMIND_INLINE void start_part(const Strips& strips, std::size_t b, std::size_t part, const ActivationBlock* x,
                                std::size_t x_stride, StripDot::Sums (&products)[strip_panels][tokens]) {
  for (std::size_t t = 0; t < tokens; ++t) {
    const StripDot::Sums start = StripDot::start(x[t * x_stride + b], strips.bias_factors[part]);
    for (auto& of_panel : products) of_panel[t] = start;
  }
}

template <std::size_t tokens>
MINIMIND_INLINE void finish_part(const Strips& strips, std::size_t b, std::size_t part, const ActivationBlock* x,
                                 std::size_t x_stride, const StripDot::Sums (&products)[strip_panels][tokens],
                                 Column (&sums)[strip_panels][tokens]) {
  for (std::size_t panel = 0; panel < strip_panels; ++panel) {
    const Column scale = load_column(strips.scales[panel][b][part]);
    for (std::size_t t = 0; t < tokens; ++t) {
      add_product(sums[panel][t], StripDot::finish(products[panel][t]), scale, x[t * x_stride + b].scale);
    }
  }
}

template <std::size_t tokens>
void multiply_tile(const Strips& strips, const ActivationBlock* x, std::size_t x_stride, const StripOutput& out) {
  Column sums[strip_panels][tokens];
  for (std::size_t panel = 0; panel < strip_panels; ++panel) {
    for (std::size_t t = 0; t < tokens; ++t) sums[panel][t] = minima_sum(strips, panel, x + t * x_stride);
  }
  for (std::size_t b = 0; b < strips.blocks; ++b) {
    if (out.first_tile) {
      for (const char* const ahead : strips.ahead) prefetch(ahead + b * strips.ahead_bytes, strips.ahead_bytes);
    }
    StripDot::Sums products[strip_panels][tokens];
    start_part(strips, b, strips.two_parts ? 0 : 1, x, x_stride, products);
    add_half(strips, b, 0, x, x_stride, products);
    if (strips.two_parts) {
      finish_part(strips, b, 0, x, x_stride, products, sums);
      start_part(strips, b, 1, x, x_stride, products);
    }
    add_half(strips, b, 1, x, x_stride, products);
    finish_part(strips, b, 1, x, x_stride, products, sums);
  }
  for (std::size_t panel = 0; panel < strip_panels; ++panel) {
    for (std::size_t t = 0; t < tokens; ++t) {
      float* const y = out.y + t * out.y_stride + panel * panel_rows;
      Column total = out.continues ? load_rows(y, out.rows[panel]) : zero_column();
      for (std::size_t p = 0; p < parts; ++p) total.part[p] = total.part[p] + sums[panel][t].part[p];
      store_rows(y, out.rows[panel], total);
    }
  }
}

// Not inlined: all types share it.
[[gnu::noinline]] void multiply_tokens(const Strips& strips, const ActivationBlock* x, std::size_t x_stride,
                                       std::size_t tokens, const StripOutput& all) {
  const auto multiply = [&](std::size_t first, auto count) {
    StripOutput out = all;
    out.y += first * out.y_stride;
    out.first_tile = first == 0;
    multiply_tile<count>(strips, x + first * x_stride, x_stride, out);
  };
  if (tokens <= strip_tokens_alone) {
    with_constant<has_single ? 2 : 1, strip_tokens_alone>(tokens, [&](auto count) { multiply(0, count); });
  } else {
    for_each_tile<StripTile>(tokens, [&](TileIndex, std::size_t first, auto count) { multiply(first, count); });
  }
}

// Several tokens: weights are unpacked once.
template <class Block>
inline void multiply_batch(const BlockMatmul<Block>& m) {
  constexpr std::size_t part_count = parts_of_32<Block>, strip_elements = strip_blocks / blocks_of_32<Block>;
  constexpr int bias = HasCodes<Block> ? 128 : Block::centre;
  constexpr std::size_t lead = 2 * strip_elements;  // how many blocks ahead are prefetched
  const std::size_t elements = m.cols / (blocks_of_32<Block> * block_cols);
  alignas(64) Strips strips;
  strips.two_parts = part_count == 2;
  strips.has_minima = HasMinima<Block>;
  strips.bias_factors[0] = bias_factors(bias, part_count, 0);
  strips.bias_factors[1] = bias_factors(bias, part_count, 1);
  strips.ahead_bytes = bytes_of_32<Block>;
  for (std::size_t panel = m.first_panel; panel < m.last_panel; panel += strip_panels) {
    StripOutput out{m.y + panel * panel_rows, m.y_stride, {}, m.continues, true};
    const std::size_t count = smaller(strip_panels, m.last_panel - panel);
    for (std::size_t i = 0; i < count; ++i) out.rows[i] = smaller(panel_rows, m.rows - (panel + i) * panel_rows);
    for (std::size_t first = 0; first < elements; first += strip_elements) {
      strips.blocks = smaller(strip_elements, elements - first) * blocks_of_32<Block>;
      // Without another panel the last one is multiplied twice and written once.
      for (std::size_t i = 0; i < strip_panels; ++i) {
        const Block* const weights = m.panels + (panel + smaller(i, count - 1)) * m.panel_stride + first;
        const Block* const in_next_panels = weights + strip_panels * m.panel_stride - elements;
        strips.ahead[i] = reinterpret_cast<const char*>((first + lead < elements ? weights : in_next_panels) + lead);
        unpack(PackedStrip<Block>(weights), i, strips);
      }
      multiply_tokens(strips, m.x + first * blocks_of_32<Block>, m.x_stride, m.tokens, out);
      out.continues = true;
    }
  }
}

template <class Block>
void part_matmul(const BlockMatmul<Block>& m) noexcept {
  if (m.tokens > 1 || !has_single) return multiply_batch(m);
  if constexpr (has_single) {
    for (std::size_t panel = m.first_panel; panel < m.last_panel; ++panel) multiply_single(m, panel);
  }
}

}  // namespace
}  // namespace minimind::kernels
