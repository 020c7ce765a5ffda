#pragma once

// Included by block_matmul-inl.h only: products of block types whose quants are bit planes, in parts of 16 or 32
// columns that have a scale and perhaps a minimum each. Products of up to 256 columns, a strip, are added by
// themselves: first the minima, then the parts in order, one fma each, then their sum to that of the strips before. For
// a single token the quants are taken from their planes in registers. For several, a strip is unpacked once, and one
// function for many types multiplies it. The order is the same, so that a batch gives bit for bit the results of single
// tokens.

#include <type_traits>

#include "runtime/kernels/int8_dot-inl.h"
#include "runtime/kernels/kernels.h"
#include "runtime/kernels/matmul-inl.h"
#include "runtime/kernels/tiles-inl.h"
#include "weights/tensor/dtype.h"

namespace minimind::kernels {
namespace {

constexpr std::size_t strip_blocks = 8;  // of 32 columns

constexpr std::size_t smaller(std::size_t a, std::size_t b) {
  return a < b ? a : b;
}

// Moves the bits of one group of a plane, of the registers' bytes, to bit `to` of each byte.
template <std::size_t bits>
inline Group take_bits(const BitPlane<bits>& plane, std::size_t group, int to) {
  Group result = load_group(plane.bytes[group * bits / 8]);
  const int shift = static_cast<int>(group * bits % 8) - to;
  const auto mask = static_cast<std::uint16_t>((((1 << bits) - 1) << to) * 0x0101);
  for_registers(
      [&](auto& bytes) {
        typedef std::uint16_t Words __attribute__((vector_size(sizeof bytes)));
        const Words words = (Words)bytes;
        bytes = (std::remove_reference_t<decltype(bytes)>)((shift >= 0 ? words >> shift : words << -shift) & mask);
      },
      result);
  return result;
}

template <std::size_t low_bits, std::size_t high_bits>
inline Group take_quants(const PlaneQuants<low_bits, high_bits>& quants, std::size_t group) {
  Group low = take_bits(quants.low, group, 0);
  if constexpr (high_bits > 0) {
    Group high = take_bits(quants.high, group, low_bits);
    for_registers([](auto& a, const auto& b) { a |= b; }, low, high);
  }
  return low;
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

inline Column product(const Column& a, const Column& b) {
  Column result;
  for (std::size_t p = 0; p < parts; ++p) result.part[p] = a.part[p] * b.part[p];
  return result;
}

inline void add_scaled(Column& sum, const Column& column, Floats factor) {
  for (std::size_t p = 0; p < parts; ++p) sum.part[p] = xsimd::fma(column.part[p], factor, sum.part[p]);
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

// The columns of a panel that are added by themselves, as a block has them: a block of 256, or several of 32.
template <class Block>
class PackedStrip {
 public:
  static constexpr std::size_t blocks_of_32 = kernels::blocks_of_32<Block>, part_count = parts_of_32<Block>;

  explicit PackedStrip(const Block* first) : first_(first) {}

  const Block& block(std::size_t i) const { return first_[i / blocks_of_32]; }
  Group weights(std::size_t i, std::size_t group) const { return load_weights(block(i), i % blocks_of_32, group); }
  Column scale(std::size_t i, std::size_t part) const {
    return part_scale(block(i), load_f16(block(i).scale), i % blocks_of_32 * part_count + part);
  }
  Column minimum(std::size_t i, std::size_t part) const {
    return part_minimum(block(i), i % blocks_of_32 * part_count + part);
  }
  Column minima_factor() const { return kernels::minima_factor(*first_); }

 private:
  const Block* first_;
};

// The same with a byte for each quant.
template <std::size_t parts_of_32>
struct Strip {
  static constexpr std::size_t part_count = parts_of_32;

  std::uint8_t quants[strip_blocks][groups][panel_rows][group_cols];  // as StripDot takes them
  float scales[strip_blocks][part_count][panel_rows];
  float minima[strip_blocks][part_count][panel_rows];
  float factor[panel_rows];

  Group weights(std::size_t i, std::size_t group) const { return load_group(quants[i][group]); }
  Column scale(std::size_t i, std::size_t part) const { return load_column(scales[i][part]); }
  Column minimum(std::size_t i, std::size_t part) const { return load_column(minima[i][part]); }
  Column minima_factor() const { return load_column(factor); }
};

// Adds up the first `blocks` blocks of 32 columns of strips of some panels, multiplied by those of some tokens.
template <class Dot, bool has_minima, std::size_t panels, std::size_t tokens, class AnyStrip, class EachBlock>
inline void multiply_strips(const AnyStrip (&strips)[panels], std::size_t blocks, const ActivationBlock* x,
                            std::size_t x_stride, const EachBlock& each_block, Column (&sums)[panels][tokens]) {
  constexpr std::size_t part_count = AnyStrip::part_count, part_groups = groups / part_count;
  for (auto& of_panel : sums) {
    for (Column& sum : of_panel) sum = zero_column();
  }
  if constexpr (has_minima) {
    for (std::size_t b = 0; b < blocks; ++b) {
      for (std::size_t part = 0; part < part_count; ++part) {
        for (std::size_t t = 0; t < tokens; ++t) {
          const ActivationBlock& activations = x[t * x_stride + b];
          const Floats sum(activations.scale * static_cast<float>(part_sum<part_count>(activations, part)));
          for (std::size_t i = 0; i < panels; ++i) add_scaled(sums[i][t], strips[i].minimum(b, part), sum);
        }
      }
    }
    for (std::size_t i = 0; i < panels; ++i) {
      const Column factor = strips[i].minima_factor();
      for (Column& sum : sums[i]) sum = product(sum, factor);
    }
  }
  for (std::size_t b = 0; b < blocks; ++b) {
    each_block(b);
    for (std::size_t part = 0; part < part_count; ++part) {
      typename Dot::Sums products[panels][tokens];
      for (std::size_t t = 0; t < tokens; ++t) {
        for (std::size_t i = 0; i < panels; ++i) {
          products[i][t] = Dot::start(part_sum<part_count>(x[t * x_stride + b], part));
        }
      }
#pragma GCC unroll 8
      for (std::size_t group = 0; group < part_groups; ++group) {
        for (std::size_t i = 0; i < panels; ++i) {
          const Group w = strips[i].weights(b, part * part_groups + group);
          for (std::size_t t = 0; t < tokens; ++t) {
            if (group > 0 && group % Dot::most_groups == 0) Dot::flush(products[i][t]);
            Dot::add(products[i][t], w, x[t * x_stride + b].quant + (part * part_groups + group) * group_cols);
          }
        }
      }
      for (std::size_t i = 0; i < panels; ++i) {
        const Column scale = strips[i].scale(b, part);
        for (std::size_t t = 0; t < tokens; ++t) {
          const Floats activation_scale(x[t * x_stride + b].scale);
          const Column product = Dot::finish(products[i][t]);
          for (std::size_t p = 0; p < parts; ++p) {
            sums[i][t].part[p] = xsimd::fma(product.part[p], scale.part[p] * activation_scale, sums[i][t].part[p]);
          }
        }
      }
    }
  }
}

// A single token: weights are used once, as they are packed.
template <class Block>
inline void multiply_single(const BlockMatmul<Block>& m, std::size_t panel) {
  constexpr std::size_t blocks_of_32 = kernels::blocks_of_32<Block>, strip_elements = strip_blocks / blocks_of_32;
  constexpr std::size_t distance = 16384, bytes_of_32 = sizeof(Block) / blocks_of_32;
  const Block* const weights = m.panels + panel * m.panel_stride;
  const std::size_t row = panel * panel_rows, elements = m.cols / (blocks_of_32 * block_cols);
  Column total = m.continues ? load_rows(m.y + row, m.rows - row) : zero_column();
  for (std::size_t first = 0; first < elements; first += strip_elements) {
    const std::size_t blocks = smaller(strip_elements, elements - first) * blocks_of_32;
    const PackedStrip<Block> strips[] = {PackedStrip<Block>(weights + first)};
    const char* const ahead = reinterpret_cast<const char*>(weights + first) + distance;
    const auto prefetch = [&](std::size_t b) {
      for (std::size_t line = 0; line < bytes_of_32; line += 64) __builtin_prefetch(ahead + b * bytes_of_32 + line);
    };
    Column sums[1][1];
    multiply_strips<typename PartDot<Block>::Type, HasMinima<Block>>(strips, blocks, m.x + first * blocks_of_32, 0,
                                                                     prefetch, sums);
    for (std::size_t p = 0; p < parts; ++p) total.part[p] = total.part[p] + sums[0][0].part[p];
  }
  store_rows(m.y + row, m.rows - row, total);
}

template <class Block>
inline void unpack(const Block* from, std::size_t blocks, Strip<parts_of_32<Block>>& strip) {
  constexpr std::size_t part_count = parts_of_32<Block>;
  const PackedStrip<Block> packed(from);
  const auto store = [](const Column& column, float* at) {
    for (std::size_t p = 0; p < parts; ++p) column.part[p].store_unaligned(at + p * lanes);
  };
  for (std::size_t b = 0; b < blocks; ++b) {
#pragma GCC unroll 8
    for (std::size_t group = 0; group < groups; ++group) {
      Group weights = packed.weights(b, group);
      if constexpr (!HasCodes<Block>) {
        constexpr int offset = strip_offset - Block::centre;
        for_registers(
            [](auto& bytes) {
              typedef std::int8_t Integers __attribute__((vector_size(sizeof bytes)));
              bytes = (std::remove_reference_t<decltype(bytes)>)((Integers)bytes + static_cast<std::int8_t>(offset));
            },
            weights);
      }
      store_group(weights, strip.quants[b][group]);
    }
    for (std::size_t part = 0; part < part_count; ++part) {
      store(packed.scale(b, part), strip.scales[b][part]);
      if constexpr (HasMinima<Block>) store(packed.minimum(b, part), strip.minima[b][part]);
    }
  }
  if constexpr (HasMinima<Block>) store(packed.minima_factor(), strip.factor);
}

// A tile's size: its sums and their totals must fit in registers.
#if defined(__AVX512VNNI__)
constexpr std::size_t strip_panels = 2, strip_tokens = 5;
#elif defined(__AVX2__)
constexpr std::size_t strip_panels = 1, strip_tokens = 4;
#elif defined(__aarch64__)
constexpr std::size_t strip_panels = 1, strip_tokens = 2;
#else
constexpr std::size_t strip_panels = 1, strip_tokens = 1;
#endif

struct StripTile {
  static constexpr std::size_t most_tokens = strip_tokens;
};

// Where the products of strips go: rows[i] of panel i, to be written or added to.
struct StripOutput {
  float* y;  // [tokens][y_stride]
  std::size_t y_stride;
  std::size_t rows[strip_panels];  // 16, or less at the end of a matrix
  bool continues;
};

template <bool has_minima, std::size_t tokens, class AnyStrip>
inline void multiply_tile(const AnyStrip (&strips)[strip_panels], std::size_t blocks, const ActivationBlock* x,
                          std::size_t x_stride, const StripOutput& out) {
  Column sums[strip_panels][tokens];
  multiply_strips<StripDot, has_minima>(
      strips, blocks, x, x_stride, [](std::size_t) {}, sums);
  for (std::size_t i = 0; i < strip_panels; ++i) {
    for (std::size_t t = 0; t < tokens; ++t) {
      float* const y = out.y + t * out.y_stride + i * panel_rows;
      Column total = out.continues ? load_rows(y, out.rows[i]) : zero_column();
      for (std::size_t p = 0; p < parts; ++p) total.part[p] = total.part[p] + sums[i][t].part[p];
      store_rows(y, out.rows[i], total);
    }
  }
}

// Not inlined: all types with such strips share it.
template <bool has_minima, class AnyStrip>
[[gnu::noinline]] void multiply_tokens(const AnyStrip (&strips)[strip_panels], std::size_t blocks,
                                       const ActivationBlock* x, std::size_t x_stride, std::size_t tokens,
                                       StripOutput out) {
  float* const y = out.y;
  const auto multiply = [&](std::size_t first, auto count) {
    out.y = y + first * out.y_stride;
    multiply_tile<has_minima, count>(strips, blocks, x + first * x_stride, x_stride, out);
  };
  if (tokens <= strip_tokens) {
    with_constant<smaller(2, strip_tokens), strip_tokens>(tokens, [&](auto count) { multiply(0, count); });
  } else {
    for_each_tile<StripTile>(tokens, [&](TileIndex, std::size_t first, auto count) { multiply(first, count); });
  }
}

// Several tokens: weights are unpacked once.
template <class Block>
inline void multiply_batch(const BlockMatmul<Block>& m) {
  constexpr std::size_t blocks_of_32 = kernels::blocks_of_32<Block>, strip_elements = strip_blocks / blocks_of_32;
  const std::size_t elements = m.cols / (blocks_of_32 * block_cols);
  alignas(64) Strip<parts_of_32<Block>> strips[strip_panels];
  for (std::size_t panel = m.first_panel; panel < m.last_panel; panel += strip_panels) {
    StripOutput out{m.y + panel * panel_rows, m.y_stride, {}, m.continues};
    const std::size_t count = smaller(strip_panels, m.last_panel - panel);
    for (std::size_t i = 0; i < count; ++i) out.rows[i] = smaller(panel_rows, m.rows - (panel + i) * panel_rows);
    for (std::size_t first = 0; first < elements; first += strip_elements) {
      const std::size_t blocks = smaller(strip_elements, elements - first) * blocks_of_32;
      // Without another panel the last one is multiplied twice and written once.
      for (std::size_t i = 0; i < strip_panels; ++i) {
        unpack(m.panels + (panel + smaller(i, count - 1)) * m.panel_stride + first, blocks, strips[i]);
      }
      multiply_tokens<HasMinima<Block>>(strips, blocks, m.x + first * blocks_of_32, m.x_stride, m.tokens, out);
      out.continues = true;
    }
  }
}

template <class Block>
void part_matmul(const BlockMatmul<Block>& m) noexcept {
  if (m.tokens > 1) return multiply_batch(m);
  for (std::size_t panel = m.first_panel; panel < m.last_panel; ++panel) multiply_single(m, panel);
}

}  // namespace
}  // namespace minimind::kernels
