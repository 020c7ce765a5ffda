#include "runtime/engine/packed_matrix.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>

#include "weights/io/error.h"
#include "weights/tensor/shape.h"

namespace minimind {
namespace {

using kernels::Bf16Block;
using kernels::block_cols;
using kernels::group_cols;
using kernels::Iq4NlBlock;
using kernels::NibbleBlock;
using kernels::panel_rows;
using kernels::Q4Block;
using kernels::Q8Block;

template <class Element>
float element(const PackedMatrix<Element>& matrix, std::size_t row, std::size_t col) {
  return to_f32(matrix.panel(row / panel_rows)[col * panel_rows + row % panel_rows]);
}

float element(const PackedMatrix<Bf16Block>& matrix, std::size_t row, std::size_t col) {
  const Bf16Block& block = matrix.panel(row / panel_rows)[col / block_cols];
  return to_f32(Bf16{block.value[col % block_cols / 2][row % panel_rows][col % 2]});
}

float element(const PackedMatrix<Q8Block>& matrix, std::size_t row, std::size_t col) {
  const Q8Block& block = matrix.panel(row / panel_rows)[col / block_cols];
  const std::size_t lane = row % panel_rows;
  return to_f32(F16{block.scale[lane]}) *
         static_cast<float>(block.quant[col % block_cols / group_cols][lane][col % group_cols]);
}

int nibble(const NibbleBlock& block, std::size_t lane, std::size_t col) {
  constexpr std::size_t half = block_cols / 2;
  const std::uint8_t both = block.nibbles[col % half / group_cols][lane][col % group_cols];
  return col < half ? both & 0x0F : both >> 4;
}

float element(const PackedMatrix<Q4Block>& matrix, std::size_t row, std::size_t col) {
  const Q4Block& block = matrix.panel(row / panel_rows)[col / block_cols];
  const std::size_t lane = row % panel_rows;
  return to_f32(F16{block.scale[lane]}) * static_cast<float>(nibble(block, lane, col % block_cols) - 8);
}

float element(const PackedMatrix<Iq4NlBlock>& matrix, std::size_t row, std::size_t col) {
  const Iq4NlBlock& block = matrix.panel(row / panel_rows)[col / block_cols];
  const std::size_t lane = row % panel_rows;
  return to_f32(F16{block.scale[lane]}) *
         static_cast<float>(kernels::iq4_nl_codes[nibble(block, lane, col % block_cols)]);
}

}  // namespace

template <class Element>
PackedMatrix<Element>::PackedMatrix(std::size_t rows, std::size_t cols, HugePageArena& memory)
    : rows_(rows), cols_(cols), elements_per_panel_(elements_of<Element>(cols)) {
  const auto elements = checked_product(panels(), elements_per_panel_);
  const auto size = elements ? checked_product(*elements, sizeof(Element)) : std::nullopt;
  if (!size || cols > SIZE_MAX / panel_rows)
    throw Error(fmt::format("a matrix of {} x {} values is too large", rows, cols));
  const std::shared_ptr<std::byte> bytes = memory.take(*size);
  data_ = {bytes, reinterpret_cast<Element*>(bytes.get())};
}

template class PackedMatrix<float>;
template class PackedMatrix<F16>;
template class PackedMatrix<Bf16>;
template class PackedMatrix<Bf16Block>;
template class PackedMatrix<Q8Block>;
template class PackedMatrix<Q4Block>;
template class PackedMatrix<Iq4NlBlock>;

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
        for (std::size_t col = 0; col < packed.cols(); ++col) out[col] = element(packed, row, col);
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
