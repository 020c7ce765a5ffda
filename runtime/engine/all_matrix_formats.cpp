#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/engine/packed_matrix.h"
#include "runtime/kernels/blocks.h"
#include "runtime/kernels/instruction_sets.h"
#include "weights/tensor/block_codes.h"
#include "weights/tensor/stored_numbers.h"

namespace minimind {
namespace {

using kernels::Bf16Block;
using kernels::block_cols;
using kernels::group_cols;
using kernels::Int8Line;
using kernels::NibbleBlock;
using kernels::panel_rows;
using kernels::PartBlock;

template <PartBlock Block>
unsigned quant_of(std::int8_t code) {
  if constexpr (kernels::HasCodes<Block>) {
    return book_indices[static_cast<std::uint8_t>(code)];
  } else {
    return static_cast<unsigned>(code + Block::centre);
  }
}

// Columns must come in order: the first one of each byte replaces what it was.
template <std::size_t bits>
void put_bits(unsigned quant, std::size_t row, std::size_t col, kernels::BitPlane<bits>& plane) {
  const std::size_t first_bit = col / group_cols * bits, shift = first_bit % 8;
  std::uint8_t& byte = plane.bytes[first_bit / 8][row][col % group_cols];
  const unsigned shifted = (quant & ((1u << bits) - 1)) << shift;
  byte = static_cast<std::uint8_t>(shift == 0 ? shifted : byte | shifted);
}

template <std::size_t low_bits, std::size_t high_bits>
void put_quant(unsigned quant, std::size_t row, std::size_t col, kernels::PlaneQuants<low_bits, high_bits>& out) {
  put_bits(quant, row, col, out.low);
  if constexpr (high_bits > 0) put_bits(quant >> low_bits, row, col, out.high);
}

template <std::derived_from<NibbleBlock> Block>
void put_block(const std::byte* stored, std::size_t row, Block& out) {
  out.scale[row] = load_element<std::uint16_t>(stored, 0);
  stored += sizeof out.scale[row];
  for (std::size_t group = 0; group < block_cols / group_cols / 2; ++group) {
    std::memcpy(out.nibbles[group][row], stored + group * group_cols, group_cols);
  }
}

template <PartBlock Block>
void put_block(const std::byte* stored, std::size_t row, Block& out) {
  constexpr std::size_t parts = kernels::parts_of_32<Block> * kernels::blocks_of_32<Block>;
  BlockCodes codes;
  unpack_block(Block::stored_type, stored, codes);
  out.scale[row] = codes.scale.bits;
  if constexpr (kernels::HasMinima<Block>) out.minimum[row] = codes.minimum.bits;
  for (std::size_t p = 0; p < parts; ++p) {
    if constexpr (kernels::HasScalesOfParts<Block>) out.part_scale[p][row] = codes.part_scales[p];
    if constexpr (kernels::HasMinimaOfParts<Block>) {
      out.part_minimum[p][row] = static_cast<std::int8_t>(codes.part_minima[p]);
    }
    if constexpr (kernels::HasNibblesOfParts<Block>) {
      out.part_scale_and_minimum[p][row] = static_cast<std::uint8_t>(codes.part_scales[p] | codes.part_minima[p] << 4);
    }
  }
  for (std::size_t i = 0; i < kernels::blocks_of_32<Block>; ++i) {
    for (std::size_t col = 0; col < block_cols; ++col) {
      put_quant(quant_of<Block>(codes.codes[i * block_cols + col]), row, col, out.quants[i]);
    }
  }
}

template <class Block>
void lay_out_blocks(const std::byte* source, std::size_t row_size, std::size_t rows, std::size_t cols,
                    std::byte* panel) {
  const auto out = reinterpret_cast<Block*>(panel);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t block = 0; block < elements_of<Block>(cols); ++block) {
      put_block(source + row * row_size + block * block_shape(stored_type<Block>).bytes, row, out[block]);
    }
  }
}

template <std::size_t bits>
unsigned bits_of(const kernels::BitPlane<bits>& plane, std::size_t row, std::size_t col) {
  const std::size_t first_bit = col / group_cols * bits;
  return plane.bytes[first_bit / 8][row][col % group_cols] >> first_bit % 8 & ((1u << bits) - 1);
}

template <std::size_t low_bits, std::size_t high_bits>
unsigned quant_of(const kernels::PlaneQuants<low_bits, high_bits>& quants, std::size_t row, std::size_t col) {
  unsigned quant = bits_of(quants.low, row, col);
  if constexpr (high_bits > 0) quant |= bits_of(quants.high, row, col) << low_bits;
  return quant;
}

template <class Block>
int code_of(unsigned quant) {
  if constexpr (kernels::HasCodes<Block>) {
    return iq4_nl_codes[quant];
  } else {
    return static_cast<int>(quant) - Block::centre;
  }
}

// What the codes of part p are multiplied by, and what is subtracted then.
struct PartFactors {
  float scale, minimum = 0;
};

template <PartBlock Block>
PartFactors factors_of(const Block& block, std::size_t row, std::size_t p) {
  PartFactors factors{to_f32(F16{block.scale[row]})};
  if constexpr (kernels::HasMinima<Block>) factors.minimum = to_f32(F16{block.minimum[row]});
  if constexpr (kernels::HasScalesOfParts<Block>) factors.scale *= static_cast<float>(block.part_scale[p][row]);
  if constexpr (kernels::HasMinimaOfParts<Block>) factors.minimum *= static_cast<float>(block.part_minimum[p][row]);
  if constexpr (kernels::HasNibblesOfParts<Block>) {
    factors.scale *= static_cast<float>(block.part_scale_and_minimum[p][row] & 0x0F);
    factors.minimum *= static_cast<float>(block.part_scale_and_minimum[p][row] >> 4);
  }
  return factors;
}

template <std::derived_from<NibbleBlock> Block>
void read_block(const Block& block, std::size_t row, float* out) {
  constexpr std::size_t half = block_cols / 2;
  const float scale = to_f32(F16{block.scale[row]});
  for (std::size_t col = 0; col < half; ++col) {
    const unsigned both = block.nibbles[col / group_cols][row][col % group_cols];
    out[col] = scale * static_cast<float>(code_of<Block>(both & 0x0F));
    out[col + half] = scale * static_cast<float>(code_of<Block>(both >> 4));
  }
}

template <PartBlock Block>
void read_block(const Block& block, std::size_t row, float* out) {
  constexpr std::size_t parts = kernels::parts_of_32<Block>, part_cols = block_cols / parts;
  for (std::size_t p = 0; p < parts * kernels::blocks_of_32<Block>; ++p) {
    const PartFactors factors = factors_of(block, row, p);
    for (std::size_t i = 0; i < part_cols; ++i) {
      const unsigned quant = quant_of(block.quants[p / parts], row, p % parts * part_cols + i);
      *out++ = factors.scale * static_cast<float>(code_of<Block>(quant)) - factors.minimum;
    }
  }
}

// Blocks of bf16, for products of bf16.
void lay_out_bf16(const std::byte* source, std::size_t row_size, std::size_t rows, std::size_t cols, std::byte* panel) {
  const auto out = reinterpret_cast<Bf16Block*>(panel);
  if (cols % block_cols != 0) out[cols / block_cols] = {};
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t col = 0; col < cols; ++col) {
      out[col / block_cols].value[col % block_cols / 2][row][col % 2] =
          load_element<std::uint16_t>(source + row * row_size, col);
    }
  }
}

void read_bf16(const std::byte* panel, std::size_t row, std::size_t cols, float* out) {
  const auto blocks = reinterpret_cast<const Bf16Block*>(panel);
  for (std::size_t col = 0; col < cols; ++col) {
    out[col] = to_f32(Bf16{blocks[col / block_cols].value[col % block_cols / 2][row][col % 2]});
  }
}

void multiply_bf16(const kernels::Table& kernels, const WeightMatrix& matrix, Range panels, const Activations& x,
                   Matrix<float> y) {
  const auto values = rounded_as<Bf16>(x);
  const std::size_t blocks = kernels::block_count(matrix.cols());
  assert(kernels.bf16 && values.rows == y.rows && values.cols == blocks * block_cols);
  kernels.bf16->matmul({reinterpret_cast<const Bf16Block*>(matrix.data()), blocks, matrix.rows(), panels.begin,
                        panels.end, values.data, values.cols, y.rows, y.data, y.cols});
}

constexpr Rounding to_bf16_rows = {
    .to_int8 = false,
    .row_bytes = [](std::size_t cols) { return kernels::block_count(cols) * block_cols * sizeof(Bf16); },
    .round = [](const kernels::Table& kernels, const float* x, std::size_t cols,
                std::byte* out) { kernels.bf16->round(x, cols, reinterpret_cast<Bf16*>(out)); },
};

constexpr MatrixFormat bf16_format{
    .type = DType::bf16,
    .laid_out_from = DType::bf16,
    .rounding = &to_bf16_rows,
    .panel_bytes = [](std::size_t cols) { return kernels::block_count(cols) * sizeof(Bf16Block); },
    .lay_out = lay_out_bf16,
    .read_row = read_bf16,
    .multiply = multiply_bf16,
};

// Rows of 8-bit integers.
void lay_out_rows(const std::byte* source, std::size_t row_size, std::size_t rows, std::size_t cols, std::byte* panel) {
  const auto out = reinterpret_cast<Int8Line*>(panel);
  std::vector<Int8Line> row(kernels::lines_per_row(cols));
  std::vector<float> values(cols);
  for (std::size_t i = 0; i < rows; ++i) {
    std::memcpy(values.data(), source + i * row_size, cols * sizeof(float));
    kernels::runnable().front().blocks->rows.round(values.data(), cols, row.data());
    std::memcpy(&out[0].value[i * sizeof(float)], &row[0], sizeof(float));
    for (std::size_t group = 0; group < kernels::tile_count(cols) * kernels::lines_per_tile; ++group) {
      std::memcpy(&out[1 + group].value[i * group_cols], row[1].value + group * group_cols, group_cols);
    }
  }
}

void read_int8_row(const std::byte* panel, std::size_t row, std::size_t cols, float* out) {
  constexpr std::size_t most_cols = kernels::most_mixed_cols;
  const auto lines = reinterpret_cast<const Int8Line*>(panel);
  Int8Line part[kernels::lines_per_row(most_cols)];
  std::memcpy(&part[0], &lines[0].value[row * sizeof(float)], sizeof(float));
  for (std::size_t first = 0; first < cols; first += most_cols) {
    const std::size_t count = std::min(most_cols, cols - first);
    for (std::size_t col = 0; col < count; col += group_cols) {
      std::memcpy(part[1].value + col, &lines[1 + (first + col) / group_cols].value[row * group_cols], group_cols);
    }
    kernels::runnable().front().blocks->rows.restore(part, count, out + first);
  }
}

void multiply_rows(const kernels::Table& kernels, const WeightMatrix& matrix, Range panels, const Activations& x,
                   Matrix<float> y) {
  const auto lines = rounded_as<Int8Line>(x);
  assert(lines.rows == y.rows && lines.cols == kernels::lines_per_row(matrix.cols()));
  kernels.blocks->rows.multiply({reinterpret_cast<const Int8Line*>(matrix.data()), matrix.rows(), matrix.cols(),
                                 panels.begin, panels.end, lines.data, y.rows, y.data, y.cols});
}

constexpr Rounding to_int8_rows = {
    .to_int8 = true,
    .row_bytes = [](std::size_t cols) { return kernels::lines_per_row(cols) * sizeof(Int8Line); },
    .round = [](const kernels::Table& kernels, const float* x, std::size_t cols,
                std::byte* out) { kernels.blocks->rows.round(x, cols, reinterpret_cast<Int8Line*>(out)); },
};

constexpr MatrixFormat int8_rows_format{
    .type = DType::q8_r,
    .laid_out_from = DType::f32,
    .rounding = &to_int8_rows,
    .panel_bytes = [](std::size_t cols) { return kernels::lines_per_panel(cols) * sizeof(Int8Line); },
    .most_cols = kernels::most_int8_cols,
    .lay_out = lay_out_rows,
    .read_row = read_int8_row,
    .multiply = multiply_rows,
};

template <class Block>
constexpr MatrixFormat format_of = format_of_blocks<Block, lay_out_blocks<Block>, read_block<Block>>();

template <class... Blocks>
constexpr std::array<MatrixFormat, 2 + sizeof...(Blocks)> formats_for(const kernels::ProductsOf<Blocks...>&) {
  return {bf16_format, int8_rows_format, format_of<Blocks>...};
}

constexpr std::array formats = formats_for(kernels::BlockProducts{});

}  // namespace

constinit const std::span<const MatrixFormat> more_matrix_formats = formats;

}  // namespace minimind
