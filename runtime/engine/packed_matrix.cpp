#include "runtime/engine/packed_matrix.h"

#include <algorithm>
#include <cassert>
#include <concepts>

namespace minimind {
namespace {

using kernels::Bf16Block;
using kernels::block_cols;
using kernels::group_cols;
using kernels::NibbleBlock;
using kernels::panel_rows;
using kernels::PartBlock;
using kernels::Q8Block;

template <class Element>
float element(const Element* panel, std::size_t row, std::size_t col) {
  return to_f32(panel[col * panel_rows + row]);
}

float element(const Bf16Block* panel, std::size_t row, std::size_t col) {
  return to_f32(Bf16{panel[col / block_cols].value[col % block_cols / 2][row][col % 2]});
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

// Computes the values of one row of a block, bit for bit those of dequantize() for the stored block.
void read_block(const Q8Block& block, std::size_t row, float* out) {
  const float scale = to_f32(F16{block.scale[row]});
  for (std::size_t col = 0; col < block_cols; ++col) {
    out[col] = scale * static_cast<float>(block.quant[col / group_cols][row][col % group_cols]);
  }
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

}  // namespace

std::size_t rows(const WeightMatrix& matrix) {
  return std::visit([](const auto& packed) { return packed.rows(); }, matrix);
}

std::size_t cols(const WeightMatrix& matrix) {
  return std::visit([](const auto& packed) { return packed.cols(); }, matrix);
}

std::size_t byte_size(const WeightMatrix& matrix) {
  return std::visit([](const auto& packed) { return packed.byte_size(); }, matrix);
}

void read_row(const WeightMatrix& matrix, std::size_t row, float* out) {
  std::visit(
      [&]<class Element>(const PackedMatrix<Element>& packed) {
        const Element* const panel = packed.panel(row / panel_rows);
        constexpr std::size_t block_size = block_shape(stored_type<Element>).elements;
        if constexpr (block_size > 1) {
          for (std::size_t i = 0; i < packed.elements_per_panel(); ++i, out += block_size) {
            read_block(panel[i], row % panel_rows, out);
          }
        } else {
          for (std::size_t col = 0; col < packed.cols(); ++col) out[col] = element(panel, row % panel_rows, col);
        }
      },
      matrix);
}

Roundings roundings_for(const WeightMatrix& matrix) {
  return std::visit(
      []<class Element>(const PackedMatrix<Element>&) {
        return Roundings{.to_int8 = is_block_type(stored_type<Element>), .to_bf16 = is_bf16_block<Element>};
      },
      matrix);
}

bool takes_quantized(const WeightMatrix& matrix) {
  return roundings_for(matrix).to_int8;
}

void matmul(const kernels::Table& kernels, const WeightMatrix& matrix, Range panels, const Activations& x,
            Matrix<float> y) {
  if (y.rows == 0) return;
  std::visit(
      [&]<class Element>(const PackedMatrix<Element>& packed) {
        const Panels<Element> all{packed.data(), packed.elements_per_panel(), packed.rows(), packed.cols()};
        if constexpr (is_block_type(stored_type<Element>)) {
          assert(x.quantized.rows == y.rows && x.quantized.cols * block_cols == packed.cols());
          matmul(kernels, all, panels, x.quantized, y);
        } else if constexpr (is_bf16_block<Element>) {
          assert(x.bf16.rows == y.rows && x.bf16.cols == packed.elements_per_panel() * block_cols);
          matmul(kernels, all, panels, x.bf16, y);
        } else {
          assert(x.exact.rows == y.rows && x.exact.cols == packed.cols());
          matmul(kernels, all, panels, x.exact, y);
        }
      },
      matrix);
}

}  // namespace minimind
