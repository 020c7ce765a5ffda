#include "runtime/engine/packed_matrix.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "weights/io/error.h"
#include "weights/tensor/block_formats.h"
#include "weights/tensor/shape.h"

namespace minimind {
namespace {

using kernels::block_cols;
using kernels::group_cols;
using kernels::NibbleBlock;
using kernels::panel_rows;
using kernels::Q8Block;

// The quants of one row of a block, in the order of a stored block.
void copy_quants(const Q8Block& block, std::size_t row, std::byte* out) {
  for (std::size_t group = 0; group < block_cols / group_cols; ++group) {
    std::memcpy(out + group * group_cols, block.quant[group][row], group_cols);
  }
}

void copy_quants(const NibbleBlock& block, std::size_t row, std::byte* out) {
  for (std::size_t group = 0; group < block_cols / group_cols / 2; ++group) {
    std::memcpy(out + group * group_cols, block.nibbles[group][row], group_cols);
  }
}

// Reads columns [32 * i, 32 * i + 32) of a row, or as many as the matrix has. `panel` is the row's panel, in which it
// is row `row`.
template <class Element>
void read_block(const Element* panel, std::size_t row, std::size_t i, std::size_t cols, float* out) {
  const std::size_t count = std::min(block_cols, cols - i * block_cols);
  if constexpr (is_block_type(stored_type<Element>)) {
    std::byte stored[block_shape(stored_type<Element>).bytes];
    std::memcpy(stored, &panel[i].scale[row], sizeof panel[i].scale[row]);
    copy_quants(panel[i], row, stored + sizeof panel[i].scale[row]);
    dequantize(stored_type<Element>, stored, block_cols, out);
  } else if constexpr (is_bf16_block<Element>) {
    for (std::size_t c = 0; c < count; ++c) out[c] = to_f32(Bf16{panel[i].value[c / 2][row][c % 2]});
  } else {
    for (std::size_t c = 0; c < count; ++c) out[c] = to_f32(panel[(i * block_cols + c) * panel_rows + row]);
  }
}

}  // namespace

std::shared_ptr<std::byte> take_panels(std::size_t rows, std::size_t cols, std::size_t elements_per_panel,
                                       std::size_t element_size, HugePageArena& memory) {
  const auto elements = checked_product(kernels::panel_count(rows), elements_per_panel);
  const auto size = elements ? checked_product(*elements, element_size) : std::nullopt;
  if (!size || cols > SIZE_MAX / panel_rows)
    throw Error(fmt::format("a matrix of {} x {} values is too large", rows, cols));
  return memory.take(*size);
}

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
      [&](const auto& packed) {
        for (std::size_t i = 0; i < kernels::block_count(packed.cols()); ++i) {
          read_block(packed.panel(row / panel_rows), row % panel_rows, i, packed.cols(), out + i * block_cols);
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
