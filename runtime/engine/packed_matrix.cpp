#include "runtime/engine/packed_matrix.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "weights/tensor/stored_numbers.h"

namespace minimind {
namespace {

using kernels::block_cols;
using kernels::group_cols;
using kernels::panel_rows;
using kernels::Q8Block;

// Writes a column of a square of values.
template <class Element, std::size_t... row>
void put_column(const Element (&square)[panel_rows][panel_rows], std::size_t col, Element* out,
                std::index_sequence<row...>) {
  ((out[row] = square[row][col]), ...);
}

// `Element` is an unsigned number of the size of the values.
template <class Element>
void lay_out_values(const std::byte* source, std::size_t row_size, std::size_t rows, std::size_t cols,
                    std::byte* panel) {
  const auto out = reinterpret_cast<Element*>(panel);
  for (std::size_t first = 0; first < cols; first += panel_rows) {
    const std::size_t count = std::min(panel_rows, cols - first);
    Element square[panel_rows][panel_rows]{};
    for (std::size_t row = 0; row < rows; ++row)
      std::memcpy(square[row], source + row * row_size + first * sizeof(Element), count * sizeof(Element));
    for (std::size_t col = 0; col < count; ++col)
      put_column(square, col, out + (first + col) * panel_rows, std::make_index_sequence<panel_rows>());
  }
}

template <class Element>
void read_values(const std::byte* panel, std::size_t row, std::size_t cols, float* out) {
  const auto values = reinterpret_cast<const Element*>(panel);
  for (std::size_t col = 0; col < cols; ++col) out[col] = to_f32(values[col * panel_rows + row]);
}

template <class Element>
void multiply_values(const kernels::Table& kernels, const WeightMatrix& matrix, Range panels, const Activations& x,
                     Matrix<float> y) {
  assert(x.exact.rows == y.rows && x.exact.cols == matrix.cols());
  matmul(kernels, panels_of<Element>(matrix), panels, x.exact, y);
}

template <class Element>
constexpr MatrixFormat format_of_values{
    .type = stored_type<Element>,
    .roundings = {},
    .panel_bytes = [](std::size_t cols) { return elements_of<Element>(cols) * sizeof(Element); },
    .lay_out = lay_out_values<std::conditional_t<sizeof(Element) == 2, std::uint16_t, std::uint32_t>>,
    .read_row = read_values<Element>,
    .multiply = multiply_values<Element>,
};

void put_q8(const std::byte* stored, std::size_t row, Q8Block& out) {
  out.scale[row] = load_element<std::uint16_t>(stored, 0);
  stored += sizeof out.scale[row];
  for (std::size_t group = 0; group < block_cols / group_cols; ++group) {
    std::memcpy(out.quant[group][row], stored + group * group_cols, group_cols);
  }
}

void read_q8(const Q8Block& block, std::size_t row, float* out) {
  const float scale = to_f32(F16{block.scale[row]});
  for (std::size_t col = 0; col < block_cols; ++col) {
    out[col] = scale * static_cast<float>(block.quant[col / group_cols][row][col % group_cols]);
  }
}

constexpr MatrixFormat plain_formats[] = {format_of_values<float>, format_of_values<F16>, format_of_values<Bf16>,
                                          format_of_blocks<Q8Block, put_q8, read_q8>()};

}  // namespace

const MatrixFormat* find_matrix_format(DType type, bool of_bf16_products) {
  for (const std::span<const MatrixFormat> formats :
       {std::span<const MatrixFormat>(plain_formats), more_matrix_formats}) {
    for (const MatrixFormat& format : formats) {
      if (format.type == type && format.roundings.to_bf16 == of_bf16_products) return &format;
    }
  }
  return nullptr;
}

}  // namespace minimind
