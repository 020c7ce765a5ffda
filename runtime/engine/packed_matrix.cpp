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

// Returns values of two rows in turns, from column `first` of each on.
template <std::size_t first, class Row, std::size_t... i>
Row zip(Row even, Row odd, std::index_sequence<i...>) {
  return Row{(i % 2 == 0 ? even[first + i / 2] : odd[first + i / 2])...};
}

// Writes the columns of a square of values, `stride` bytes apart. Each step halves the distance of a column's values.
template <class Row, std::size_t... i>
void transpose(const std::byte* source, std::size_t row_size, std::byte* out, std::size_t stride,
               std::index_sequence<i...> all) {
  constexpr std::size_t side = sizeof...(i);
  Row rows[side];
  (std::memcpy(&rows[i], source + i * row_size, sizeof(Row)), ...);
  for (std::size_t step = 1; step < side; step *= 2) {
    const Row zipped[] = {zip<i % 2 * side / 2>(rows[i / 2], rows[(i + side) / 2], all)...};
    ((rows[i] = zipped[i]), ...);
  }
  (std::memcpy(out + i * stride, &rows[i], sizeof(Row)), ...);
}

// `Element` is an unsigned number of the size of the values.
template <class Element>
void lay_out_values(const std::byte* source, std::size_t row_size, std::size_t rows, std::size_t cols,
                    std::byte* panel) {
  typedef Element Row __attribute__((vector_size(16)));  // as large as a register of any instruction set
  constexpr std::size_t size = sizeof(Element), side = sizeof(Row) / size, stride = panel_rows * size;
  const bool in_squares = rows % side == 0 && cols % side == 0;
  for (std::size_t col = 0; col < cols; col += in_squares ? side : 1) {
    for (std::size_t row = 0; row < rows; row += in_squares ? side : 1) {
      const std::byte* const in = source + row * row_size + col * size;
      std::byte* const out = panel + col * stride + row * size;
      if (in_squares) {
        transpose<Row>(in, row_size, out, stride, std::make_index_sequence<side>());
      } else {
        std::memcpy(out, in, size);
      }
    }
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
    .laid_out_from = stored_type<Element>,
    .rounding = nullptr,
    .panel_bytes = [](std::size_t cols) { return elements_of<Element>(cols) * sizeof(Element); },
    .lay_out = lay_out_values<std::conditional_t<sizeof(Element) == 2, std::uint16_t, std::uint32_t>>,
    .read_row = read_values<Element>,
    .multiply = multiply_values<Element>,
};

void lay_out_q8(const std::byte* source, std::size_t row_size, std::size_t rows, std::size_t cols, std::byte* panel) {
  static_assert(group_cols == sizeof(std::uint32_t));
  const auto blocks = reinterpret_cast<Q8Block*>(panel);
  for (std::size_t i = 0; i < cols / block_cols; ++i, source += block_shape(DType::q8_0).bytes) {
    for (std::size_t row = 0; row < rows; ++row)
      blocks[i].scale[row] = load_element<std::uint16_t>(source + row * row_size, 0);
    lay_out_values<std::uint32_t>(source + sizeof blocks[i].scale[0], row_size, rows, block_cols / group_cols,
                                  reinterpret_cast<std::byte*>(blocks[i].quant));
  }
}

void read_q8(const Q8Block& block, std::size_t row, float* out) {
  const float scale = to_f32(F16{block.scale[row]});
  for (std::size_t col = 0; col < block_cols; ++col) {
    out[col] = scale * static_cast<float>(block.quant[col / group_cols][row][col % group_cols]);
  }
}

constexpr MatrixFormat plain_formats[] = {format_of_values<float>, format_of_values<F16>, format_of_values<Bf16>,
                                          format_of_blocks<Q8Block, lay_out_q8, read_q8>()};

}  // namespace

constinit const Rounding to_int8_blocks = {
    .to_int8 = true,
    .row_bytes = [](std::size_t cols) { return kernels::block_count(cols) * sizeof(kernels::ActivationBlock); },
    .round = [](const kernels::Table& kernels, const float* x, std::size_t cols,
                std::byte* out) { kernels.quantize(x, cols, reinterpret_cast<kernels::ActivationBlock*>(out)); },
};

const MatrixFormat* find_matrix_format(DType type, bool of_bf16_products) {
  for (const std::span<const MatrixFormat> formats :
       {std::span<const MatrixFormat>(plain_formats), more_matrix_formats}) {
    for (const MatrixFormat& format : formats) {
      const bool of_bf16 = format.rounding && !format.rounding->to_int8;
      if (format.type == type && of_bf16 == of_bf16_products) return &format;
    }
  }
  return nullptr;
}

}  // namespace minimind
