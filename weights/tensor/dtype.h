#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace minimind {

// How the values of a stored tensor are encoded, always little-endian. From q8_0 on, the types are the block formats of
// GGUF: consecutive values of a row share scales; see block_formats.h.
enum class DType {
  f32,
  f16,
  bf16,
  f64,
  i64,
  i32,
  i16,
  i8,
  u8,
  boolean,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  q2_k,
  q3_k,
  iq4_xs,
  iq3_s,
  iq3_xxs,
  iq2_s,
  iq2_xs,
  iq2_xxs,
  iq1_m,
  iq1_s,
  tq1_0,
  tq2_0,
  mxfp4,
  nvfp4,
  q8_r  // only in memory, and no block format: rows with one scale, see runtime/kernels/int8_rows.h
};

// The smallest unit of an encoding: `elements` values in `bytes`. One value unless it is a block format.
struct BlockShape {
  std::size_t elements;
  std::size_t bytes;
};

// One row per DType, in their order.
struct DTypeRow {
  DType type;
  std::string_view name;
  BlockShape block;
  // The numbers by which GGUF files name it: of a tensor's type, ggml's enum ggml_type, and of the type that most of a
  // file has, enum ggml_ftype.
  std::optional<std::uint32_t> gguf_type = std::nullopt, gguf_file_type = std::nullopt;
};
inline constexpr DTypeRow dtype_rows[] = {
    {DType::f32, "f32", {1, 4}, 0, 0},
    {DType::f16, "f16", {1, 2}, 1, 1},
    {DType::bf16, "bf16", {1, 2}, 30, 32},
    {DType::f64, "f64", {1, 8}, 28},
    {DType::i64, "i64", {1, 8}, 27},
    {DType::i32, "i32", {1, 4}, 26},
    {DType::i16, "i16", {1, 2}, 25},
    {DType::i8, "i8", {1, 1}, 24},
    {DType::u8, "u8", {1, 1}},
    {DType::boolean, "bool", {1, 1}},
    {DType::q8_0, "q8_0", {32, 34}, 8, 7},
    {DType::q4_0, "q4_0", {32, 18}, 2, 2},
    {DType::q4_1, "q4_1", {32, 20}, 3, 3},
    {DType::q5_0, "q5_0", {32, 22}, 6, 8},
    {DType::q5_1, "q5_1", {32, 24}, 7, 9},
    {DType::q4_k, "q4_k", {256, 144}, 12, 15},
    {DType::q5_k, "q5_k", {256, 176}, 13, 17},
    {DType::q6_k, "q6_k", {256, 210}, 14, 18},
    {DType::iq4_nl, "iq4_nl", {32, 18}, 20, 25},
    {DType::q2_k, "q2_k", {256, 84}, 10, 10},
    {DType::q3_k, "q3_k", {256, 110}, 11, 12},
    {DType::iq4_xs, "iq4_xs", {256, 136}, 23, 30},
    {DType::iq3_s, "iq3_s", {256, 110}, 21, 26},
    {DType::iq3_xxs, "iq3_xxs", {256, 98}, 18, 23},
    {DType::iq2_s, "iq2_s", {256, 82}, 22, 28},
    {DType::iq2_xs, "iq2_xs", {256, 74}, 17, 20},
    {DType::iq2_xxs, "iq2_xxs", {256, 66}, 16, 19},
    {DType::iq1_m, "iq1_m", {256, 56}, 29, 31},
    {DType::iq1_s, "iq1_s", {256, 50}, 19, 24},
    {DType::tq1_0, "tq1_0", {256, 54}, 34, 36},
    {DType::tq2_0, "tq2_0", {256, 66}, 35, 37},
    {DType::mxfp4, "mxfp4", {32, 17}, 39, 38},
    {DType::nvfp4, "nvfp4", {64, 36}, 40, 39},
    {DType::q8_r, "q8_r", {1, 1}},
};

constexpr const DTypeRow& row_of(DType type) {
  return dtype_rows[static_cast<std::size_t>(type)];
}

// Each row is at the index that row_of uses.
static_assert([] {
  for (std::size_t i = 0; i < std::size(dtype_rows); ++i) {
    if (dtype_rows[i].type != static_cast<DType>(i)) return false;
  }
  return std::size(dtype_rows) == static_cast<std::size_t>(DType::q8_r) + 1;  // the last one
}());

constexpr BlockShape block_shape(DType type) {
  return row_of(type).block;
}

constexpr std::string_view name_of(DType type) {
  return row_of(type).name;
}

constexpr bool is_block_type(DType type) {
  return block_shape(type).elements > 1;
}

// Returns true for f32, f16 and bf16, the types that weights are trained and computed in.
constexpr bool is_float_type(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

// iq4_nl: w = scale * iq4_nl_codes[quant], with 4-bit quants and one binary16 scale per 32 values. The codes are denser
// around 0, as most weights are. Not inline: the kernels' objects would then export a symbol that the linker may share.
constexpr std::int8_t iq4_nl_codes[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// Returns the bytes per value of a type that is not a block type.
constexpr std::size_t size_of(DType type) {
  return is_block_type(type) ? 0 : block_shape(type).bytes;
}

}  // namespace minimind
