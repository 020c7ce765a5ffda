#include "weights/tensor/block_codes.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace minimind {
namespace {

using Byte = std::uint8_t;

// Integers [first, first + count) of an array have these bits in successive bytes of the block: `bits` bits from bit
// `shift` of each byte on are bits `above` and up of one integer. Facts from ggml's ggml-common.h.
struct BitRun {
  std::size_t first, count, byte;
  int shift, bits, above = 0;
};

constexpr std::size_t no_field = ~std::size_t{0};

// Where a block has its fields. Integers of 8 bits are stored as they are, narrower ones minus the lowest number of
// their range, and a code with a book as its index. A minimum without integers is stored with the opposite sign.
struct Layout {
  DType type;
  CodeRanges ranges;
  std::size_t scale_byte, minimum_byte;
  std::span<const BitRun> codes, scales = {}, minima = {};
  BlockShape block = block_shape(type);
};

// What is added to an integer of this range when it is stored.
constexpr int bias_of(IntegerRange range) {
  return range.lowest == -128 ? 0 : -range.lowest;
}

template <std::size_t... counts>
constexpr auto joined(const std::array<BitRun, counts>&... lists) {
  std::array<BitRun, (counts + ...)> all{};
  std::size_t i = 0;
  const auto append = [&](const auto& list) {
    for (const BitRun& run : list) all[i++] = run;
  };
  (append(lists), ...);
  return all;
}

constexpr std::array<BitRun, 1> bytes_at(std::size_t at) {
  return {{{0, 32, at, 0, 8}}};
}

// 32 values: value i has the low half of byte i, value i + 16 the high half.
constexpr std::array<BitRun, 2> nibbles_at(std::size_t at, std::size_t first = 0) {
  return {{{first, 16, at, 0, 4}, {first + 16, 16, at, 4, 4}}};
}

// The fifth bits of 32 values, those of 8 values in a byte.
constexpr std::array<BitRun, 32> fifth_bits_at(std::size_t at) {
  std::array<BitRun, 32> runs{};
  for (std::size_t i = 0; i < 32; ++i) runs[i] = {i, 1, at + i / 8, static_cast<int>(i % 8), 1, 4};
  return runs;
}

// 256 values, each of whose 32 bytes are shared by 8 / bits successive lots of 32 values, the first of them lowest.
template <int bits>
constexpr std::array<BitRun, 8> lots_at(std::size_t at, int above = 0) {
  std::array<BitRun, 8> runs{};
  constexpr std::size_t sharing = 8 / bits;
  for (std::size_t lot = 0; lot < 8; ++lot) {
    runs[lot] = {32 * lot, 32, at + lot / sharing * 32, static_cast<int>(lot % sharing) * bits, bits, above};
  }
  return runs;
}

// q6_k's low halves: in each half of the block, lots 0 and 1 have the low halves of 64 bytes, lots 2 and 3 the high
// ones.
constexpr std::array<BitRun, 8> wide_nibbles_at(std::size_t at) {
  std::array<BitRun, 8> runs{};
  for (std::size_t lot = 0; lot < 8; ++lot) {
    runs[lot] = {32 * lot, 32, at + lot / 4 * 64 + lot % 2 * 32, lot % 4 < 2 ? 0 : 4, 4};
  }
  return runs;
}

constexpr std::array<BitRun, 16> nibbles_of_parts_at(std::size_t at) {
  std::array<BitRun, 16> runs{};
  for (std::size_t part = 0; part < 8; ++part) {
    const auto [low, high] = nibbles_at(at + 16 * part, 32 * part);
    runs[2 * part] = low;
    runs[2 * part + 1] = high;
  }
  return runs;
}

// iq4_xs's scales: the high pairs of four share a byte, the low halves of two.
constexpr std::array<BitRun, 16> iq4_xs_scales_at(std::size_t pairs, std::size_t halves) {
  std::array<BitRun, 16> runs{};
  for (std::size_t part = 0; part < 8; ++part) {
    runs[2 * part] = {part, 1, halves + part / 2, static_cast<int>(part % 2) * 4, 4};
    runs[2 * part + 1] = {part, 1, pairs + part / 4, static_cast<int>(part % 4) * 2, 2, 4};
  }
  return runs;
}

constexpr auto q8_0_codes = bytes_at(2);
constexpr auto q4_0_codes = nibbles_at(2);
constexpr auto q4_1_codes = nibbles_at(4);
constexpr auto q5_0_codes = joined(nibbles_at(6), fifth_bits_at(2));
constexpr auto q5_1_codes = joined(nibbles_at(8), fifth_bits_at(4));
constexpr auto q2_k_codes = lots_at<2>(16);
constexpr auto q3_k_codes = joined(lots_at<2>(32), lots_at<1>(0, 2));
constexpr auto q4_k_codes = lots_at<4>(16);
constexpr auto q5_k_codes = joined(lots_at<4>(48), lots_at<1>(16, 4));
constexpr auto q6_k_codes = joined(wide_nibbles_at(0), lots_at<2>(128, 4));
constexpr auto iq4_xs_codes = nibbles_of_parts_at(8);
constexpr auto tq2_0_codes = lots_at<2>(0);

constexpr BitRun q2_k_scales[] = {{0, 16, 0, 0, 4}};
constexpr BitRun q2_k_minima[] = {{0, 16, 0, 4, 4}};
constexpr BitRun q3_k_scales[] = {{0, 8, 96, 0, 4},     {8, 8, 96, 4, 4},     {0, 4, 104, 0, 2, 4},
                                  {4, 4, 104, 2, 2, 4}, {8, 4, 104, 4, 2, 4}, {12, 4, 104, 6, 2, 4}};
// q4_k and q5_k: the 6 bits of the first four parts are together; those of the last four are a half of 4 more bytes and
// the high 2 bits of the bytes before.
constexpr BitRun q4_k_scales[] = {{0, 4, 4, 0, 6}, {4, 4, 12, 0, 4}, {4, 4, 4, 6, 2, 4}};
constexpr BitRun q4_k_minima[] = {{0, 4, 8, 0, 6}, {4, 4, 12, 4, 4}, {4, 4, 8, 6, 2, 4}};
constexpr BitRun q6_k_scales[] = {{0, 16, 192, 0, 8}};
constexpr auto iq4_xs_scales = iq4_xs_scales_at(2, 4);

constexpr IntegerRange always_one{1, 1}, none{0, 0};

// The types, a row each.
constexpr Layout layouts[] = {
    {DType::q8_0, {32, {-128, 127}, always_one, none}, 0, no_field, q8_0_codes},
    {DType::q4_0, {32, {-8, 7}, always_one, none}, 0, no_field, q4_0_codes},
    {DType::q4_1, {32, {0, 15}, always_one, always_one}, 0, 2, q4_1_codes},
    {DType::q5_0, {32, {-16, 15}, always_one, none}, 0, no_field, q5_0_codes},
    {DType::q5_1, {32, {0, 31}, always_one, always_one}, 0, 2, q5_1_codes},
    {DType::iq4_nl, {32, {-127, 113}, always_one, none, iq4_nl_codes}, 0, no_field, q4_0_codes},
    {DType::q2_k, {16, {0, 3}, {0, 15}, {0, 15}}, 80, 82, q2_k_codes, q2_k_scales, q2_k_minima},
    {DType::q3_k, {16, {-4, 3}, {-32, 31}, none}, 108, no_field, q3_k_codes, q3_k_scales},
    {DType::q4_k, {32, {0, 15}, {0, 63}, {0, 63}}, 0, 2, q4_k_codes, q4_k_scales, q4_k_minima},
    {DType::q5_k, {32, {0, 31}, {0, 63}, {0, 63}}, 0, 2, q5_k_codes, q4_k_scales, q4_k_minima},
    {DType::q6_k, {16, {-32, 31}, {-128, 127}, none}, 208, no_field, q6_k_codes, q6_k_scales},
    {DType::iq4_xs, {32, {-127, 113}, {-32, 31}, none, iq4_nl_codes}, 0, no_field, iq4_xs_codes, iq4_xs_scales},
    {DType::tq2_0, {256, {-1, 2}, always_one, none}, 64, no_field, tq2_0_codes},
};

template <BitRun run>
void put_run(const Byte* integers, Byte* block) {
  constexpr unsigned mask = (1u << run.bits) - 1;
  for (std::size_t i = 0; i < run.count; ++i) {
    const unsigned bits = (integers[run.first + i] >> run.above) & mask;
    block[run.byte + i] = static_cast<Byte>(block[run.byte + i] | bits << run.shift);
  }
}

// Adds the bits to `integers`, which start as 0.
template <BitRun run>
void get_run(const Byte* block, Byte* integers) {
  constexpr unsigned mask = (1u << run.bits) - 1;
  for (std::size_t i = 0; i < run.count; ++i) {
    const unsigned bits = (block[run.byte + i] >> run.shift) & mask;
    integers[run.first + i] = static_cast<Byte>(integers[run.first + i] | bits << run.above);
  }
}

// All runs of a list of layouts[at]. As template arguments, they are constants of unrolled loops.
template <std::size_t at, std::span<const BitRun> Layout::*list>
void put_runs(const Byte* integers, Byte* block) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (put_run<(layouts[at].*list)[i]>(integers, block), ...);
  }
  (std::make_index_sequence<(layouts[at].*list).size()>());
}

template <std::size_t at, std::span<const BitRun> Layout::*list>
void get_runs(const Byte* block, Byte* integers) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (get_run<(layouts[at].*list)[i]>(block, integers), ...);
  }
  (std::make_index_sequence<(layouts[at].*list).size()>());
}

// What the binary16 of a minimum differs by from that of a block.
template <IntegerRange range>
constexpr std::uint16_t minimum_sign = range.lowest == 1 ? 0x8000 : 0;

template <std::size_t at>
void pack(const BlockCodes& codes, Byte* block) {
  constexpr const Layout& layout = layouts[at];
  constexpr std::size_t elements = layout.block.elements, parts = elements / layout.ranges.part;
  std::memset(block, 0, layout.block.bytes);
  Byte integers[elements];
  for (std::size_t i = 0; i < elements; ++i) {
    if constexpr (layout.ranges.book.empty()) {
      integers[i] = static_cast<Byte>(codes.codes[i] + bias_of(layout.ranges.codes));
    } else {
      integers[i] = book_indices[static_cast<Byte>(codes.codes[i])];
    }
  }
  put_runs<at, &Layout::codes>(integers, block);
  if constexpr (!layout.scales.empty()) {
    constexpr int bias = bias_of(layout.ranges.scales);
    for (std::size_t p = 0; p < parts; ++p) integers[p] = static_cast<Byte>(codes.part_scales[p] + bias);
    put_runs<at, &Layout::scales>(integers, block);
    put_runs<at, &Layout::minima>(codes.part_minima, block);
  }
  std::memcpy(block + layout.scale_byte, &codes.scale, sizeof codes.scale);
  if constexpr (layout.minimum_byte != no_field) {
    const F16 minimum{static_cast<std::uint16_t>(codes.minimum.bits ^ minimum_sign<layout.ranges.minima>)};
    std::memcpy(block + layout.minimum_byte, &minimum, sizeof minimum);
  }
}

template <std::size_t at>
void unpack(const Byte* block, BlockCodes& out) {
  constexpr const Layout& layout = layouts[at];
  constexpr std::size_t elements = layout.block.elements, parts = elements / layout.ranges.part;
  Byte integers[elements] = {};
  get_runs<at, &Layout::codes>(block, integers);
  for (std::size_t i = 0; i < elements; ++i) {
    if constexpr (layout.ranges.book.empty()) {
      out.codes[i] = static_cast<std::int8_t>(integers[i] - bias_of(layout.ranges.codes));
    } else {
      out.codes[i] = layout.ranges.book[integers[i]];
    }
  }
  if constexpr (layout.scales.empty()) {
    out.part_scales[0] = 1;
    out.part_minima[0] = static_cast<Byte>(layout.ranges.minima.lowest);
  } else {
    Byte scales[parts] = {};
    get_runs<at, &Layout::scales>(block, scales);
    constexpr int bias = bias_of(layout.ranges.scales);
    for (std::size_t p = 0; p < parts; ++p) out.part_scales[p] = static_cast<std::int8_t>(scales[p] - bias);
    std::memset(out.part_minima, 0, parts);
    get_runs<at, &Layout::minima>(block, out.part_minima);
  }
  std::memcpy(&out.scale, block + layout.scale_byte, sizeof out.scale);
  out.minimum = {};
  if constexpr (layout.minimum_byte != no_field) {
    std::memcpy(&out.minimum, block + layout.minimum_byte, sizeof out.minimum);
    out.minimum.bits ^= minimum_sign<layout.ranges.minima>;
  }
}

template <std::size_t at>
void compute_values(const BlockCodes& codes, float* out) {
  constexpr const Layout& layout = layouts[at];
  constexpr std::size_t part = layout.ranges.part;
  const float scale = to_f32(codes.scale), minimum = to_f32(codes.minimum);
  for (std::size_t p = 0; p < layout.block.elements / part; ++p) {
    const float part_scale = scale * static_cast<float>(codes.part_scales[p]);
    const float part_minimum = minimum * static_cast<float>(codes.part_minima[p]);
    for (std::size_t i = part * p; i < part * (p + 1); ++i) {
      out[i] = part_scale * static_cast<float>(codes.codes[i]) - part_minimum;
    }
  }
}

template <std::size_t at>
void read_blocks_with_codes(const std::byte* blocks, std::size_t count, float* out) {
  constexpr BlockShape shape = layouts[at].block;
  BlockCodes codes{};
  for (std::size_t i = 0; i < count; i += shape.elements, blocks += shape.bytes) {
    unpack<at>(reinterpret_cast<const Byte*>(blocks), codes);
    compute_values<at>(codes, out + i);
  }
}

// Calls use.template operator()<at>() with the index of the type's layout; returns false if it has none.
template <class Use>
bool with_layout(DType type, Use use) {
  const auto choose = [&]<std::size_t... at>(std::index_sequence<at...>) {
    return ((type == layouts[at].type && (use.template operator()<at>(), true)) || ...);
  };
  return choose(std::make_index_sequence<std::size(layouts)>());
}

}  // namespace

bool has_block_codes(DType type) {
  return std::ranges::find(layouts, type, &Layout::type) != std::end(layouts);
}

CodeRanges code_ranges(DType type) {
  const auto* const layout = std::ranges::find(layouts, type, &Layout::type);
  return layout == std::end(layouts) ? CodeRanges{} : layout->ranges;
}

void pack_block(DType type, const BlockCodes& codes, std::byte* out) {
  with_layout(type, [&]<std::size_t at>() { pack<at>(codes, reinterpret_cast<Byte*>(out)); });
}

void unpack_block(DType type, const std::byte* block, BlockCodes& out) {
  with_layout(type, [&]<std::size_t at>() { unpack<at>(reinterpret_cast<const Byte*>(block), out); });
}

void read_codes(DType type, const std::byte* blocks, std::size_t count, float* out) {
  with_layout(type, [&]<std::size_t at>() { read_blocks_with_codes<at>(blocks, count, out); });
}

}  // namespace minimind
