#include "runtime/engine/packed_matrix.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>

#include "runtime/engine/block_rows.h"
#include "weights/io/error.h"
#include "weights/tensor/shape.h"

namespace minimind {
namespace {

using kernels::Bf16Block;
using kernels::block_cols;
using kernels::panel_rows;

template <class Element>
float element(const Element* panel, std::size_t row, std::size_t col) {
  return to_f32(panel[col * panel_rows + row]);
}

float element(const Bf16Block* panel, std::size_t row, std::size_t col) {
  return to_f32(Bf16{panel[col / block_cols].value[col % block_cols / 2][row][col % 2]});
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
