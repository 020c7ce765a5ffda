#include "runtime/packed_matrix.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "weights/error.h"
#include "weights/quantize.h"
#include "weights/shape.h"
#include "weights/stored_numbers.h"

namespace minimind {
namespace {

using kernels::block_cols;
using kernels::panel_rows;
using kernels::Q4Block;
using kernels::Q8Block;

template <class Element>
constexpr bool is_block = std::is_same_v<Element, Q8Block> || std::is_same_v<Element, Q4Block>;

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>) return value;
  if constexpr (std::is_same_v<To, float>) return to_f32(value);
  if constexpr (std::is_same_v<To, F16>) return to_f16(to_f32(value));
  if constexpr (std::is_same_v<To, Bf16>) return to_bf16(to_f32(value));
}

template <class To, class From>
void pack_panel(const std::byte* source, std::size_t rows, std::size_t cols, To* out) {
  for (std::size_t col = 0; col < cols; ++col) {
    for (std::size_t row = 0; row < rows; ++row) {
      out[col * panel_rows + row] = convert<To>(load_element<From>(source, row * cols + col));
    }
    for (std::size_t row = rows; row < panel_rows; ++row) out[col * panel_rows + row] = To{};
  }
}

void put_row(const float (&values)[block_cols], std::size_t row, Q8Block& out) {
  const Q8_0 block = quantize_q8_0(values);
  out.scale[row] = block.scale.bits;
  for (std::size_t col = 0; col < block_cols; ++col) out.quant[col][row] = block.quant[col];
}

void put_row(const float (&values)[block_cols], std::size_t row, Q4Block& out) {
  constexpr std::size_t half = block_cols / 2;
  const Q4_0 block = quantize_q4_0(values);
  out.scale[row] = block.scale.bits;
  for (std::size_t col = 0; col < half; ++col) {
    out.nibbles[col][row] = static_cast<std::uint8_t>(block.quant[col] | (block.quant[col + half] << 4));
  }
}

// False when a number is not finite: what the block then holds means nothing.
template <class Block, class From>
bool pack_block_panel(const std::byte* source, std::size_t rows, std::size_t cols, Block* out) {
  std::memset(out, 0, cols / block_cols * sizeof(Block));
  float values[block_cols];
  bool finite = true;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t block = 0; block < cols / block_cols; ++block) {
      for (std::size_t i = 0; i < block_cols; ++i) {
        const float value = to_f32(load_element<From>(source, row * cols + block * block_cols + i));
        values[i] = std::isfinite(value) ? value : 0;
        finite = finite && std::isfinite(value);
      }
      put_row(values, row, out[block]);
    }
  }
  return finite;
}

// Rows [first_row, last_row) of a stored matrix into the panels they make up. first_row begins a panel.
template <class Element, class From>
bool pack_rows(const StoredTensor& tensor, std::size_t first_row, std::size_t last_row, Element* out,
               std::size_t elements_per_panel) {
  const std::size_t cols = tensor.shape[1];
  bool finite = true;
  for (std::size_t row = first_row; row < last_row; row += panel_rows, out += elements_per_panel) {
    const std::size_t rows = std::min(panel_rows, last_row - row);
    const std::byte* source = tensor.data.data() + row * cols * sizeof(From);
    if constexpr (is_block<Element>) {
      finite = pack_block_panel<Element, From>(source, rows, cols, out) && finite;
    } else {
      pack_panel<Element, From>(source, rows, cols, out);
    }
  }
  const std::size_t row_bytes = cols * sizeof(From);
  if (tensor.mapping) {
    tensor.mapping->release(tensor.data.subspan(first_row * row_bytes, (last_row - first_row) * row_bytes));
  }
  return finite;
}

template <class Element>
float element(const PackedMatrix<Element>& matrix, std::size_t row, std::size_t col) {
  return to_f32(matrix.panel(row / panel_rows)[col * panel_rows + row % panel_rows]);
}

float element(const PackedMatrix<Q8Block>& matrix, std::size_t row, std::size_t col) {
  const Q8Block& block = matrix.panel(row / panel_rows)[col / block_cols];
  const std::size_t lane = row % panel_rows;
  return to_f32(F16{block.scale[lane]}) * static_cast<float>(block.quant[col % block_cols][lane]);
}

float element(const PackedMatrix<Q4Block>& matrix, std::size_t row, std::size_t col) {
  constexpr std::size_t half = block_cols / 2;
  const Q4Block& block = matrix.panel(row / panel_rows)[col / block_cols];
  const std::size_t lane = row % panel_rows, at = col % block_cols;
  const int nibble = at < half ? block.nibbles[at][lane] & 0x0F : block.nibbles[at - half][lane] >> 4;
  return to_f32(F16{block.scale[lane]}) * static_cast<float>(nibble - 8);
}

void call(const kernels::Table& table, const kernels::Matmul<float>& m) {
  table.matmul_f32(m);
}
void call(const kernels::Table& table, const kernels::Matmul<F16>& m) {
  table.matmul_f16(m);
}
void call(const kernels::Table& table, const kernels::Matmul<Bf16>& m) {
  table.matmul_bf16(m);
}
void call(const kernels::Table& table, const kernels::Matmul<Q8Block>& m) {
  table.matmul_q8_0(m);
}
void call(const kernels::Table& table, const kernels::Matmul<Q4Block>& m) {
  table.matmul_q4_0(m);
}

}  // namespace

template <class Element>
PackedMatrix<Element>::PackedMatrix(std::size_t rows, std::size_t cols)
    : rows_(rows), cols_(cols), elements_per_panel_(is_block<Element> ? cols / block_cols : cols * panel_rows) {
  const auto elements = checked_product(panels(), elements_per_panel_);
  const auto size = elements ? checked_product(*elements, sizeof(Element)) : std::nullopt;
  if (!size || cols > SIZE_MAX / panel_rows) throw Error(fmt::format("a matrix of {} x {} is too large", rows, cols));
  data_.reset(static_cast<Element*>(::operator new (*size, std::align_val_t{64})));
}

template class PackedMatrix<float>;
template class PackedMatrix<F16>;
template class PackedMatrix<Bf16>;
template class PackedMatrix<Q8Block>;
template class PackedMatrix<Q4Block>;

WeightType parse_weight_type(const std::string& name) {
  if (name == "f32") return WeightType::f32;
  if (name == "f16") return WeightType::f16;
  if (name == "bf16") return WeightType::bf16;
  if (name == "q8_0") return WeightType::q8_0;
  if (name == "q4_0") return WeightType::q4_0;
  throw UsageError(fmt::format("--type is \"{}\", wanted f32, f16, bf16, q8_0 or q4_0", name));
}

std::size_t rows(const WeightMatrix& matrix) {
  return std::visit([](const auto& packed) { return packed.rows(); }, matrix);
}

std::size_t cols(const WeightMatrix& matrix) {
  return std::visit([](const auto& packed) { return packed.cols(); }, matrix);
}

bool can_hold(WeightType type, std::size_t cols) {
  return (type != WeightType::q8_0 && type != WeightType::q4_0) || cols % block_cols == 0;
}

template <class Element>
WeightMatrix Packer::add_as(const StoredTensor& tensor) {
  constexpr std::size_t rows_per_job = 16 * panel_rows;
  PackedMatrix<Element> packed(tensor.shape[0], tensor.shape[1]);
  with_stored_type(tensor, [&]<class From>(From) {
    for (std::size_t first = 0; first < packed.rows(); first += rows_per_job) {
      const std::size_t last = std::min(first + rows_per_job, packed.rows());
      jobs_.push_back({&tensor, [&tensor, first, last, out = packed.panel(first / panel_rows),
                                 stride = packed.elements_per_panel()] {
                         return pack_rows<Element, From>(tensor, first, last, out, stride);
                       }});
    }
  });
  return packed;
}

WeightMatrix Packer::add(const StoredTensor& tensor, WeightType type) {
  if (!can_hold(type, tensor.shape[1])) type = WeightType::f16;
  switch (type) {
    case WeightType::as_stored:
      return with_stored_type(tensor, [&]<class Stored>(Stored) { return add_as<Stored>(tensor); });
    case WeightType::f32:
      return add_as<float>(tensor);
    case WeightType::f16:
      return add_as<F16>(tensor);
    case WeightType::bf16:
      return add_as<Bf16>(tensor);
    case WeightType::q8_0:
      return add_as<Q8Block>(tensor);
    case WeightType::q4_0:
      return add_as<Q4Block>(tensor);
  }
  return add_as<float>(tensor);
}

void Packer::finish(std::size_t threads) {
  std::atomic<std::size_t> next{0};
  std::atomic<const StoredTensor*> not_finite{nullptr};
  run_team(threads, [&](Worker&) {
    for (std::size_t i = next++; i < jobs_.size(); i = next++) {
      if (!jobs_[i].fill()) not_finite = jobs_[i].tensor;
    }
  });
  jobs_.clear();
  if (const StoredTensor* tensor = not_finite) {
    throw Error(fmt::format("{}: a tensor {} holds NaN or infinity, which q8_0 and q4_0 cannot hold; leave out --type",
                            tensor->file, shape_text(tensor->shape)));
  }
}

WeightMatrix pack(const StoredTensor& tensor, WeightType type, std::size_t threads) {
  Packer packer;
  WeightMatrix matrix = packer.add(tensor, type);
  packer.finish(threads);
  return matrix;
}

void read_row(const WeightMatrix& matrix, std::size_t row, float* out) {
  std::visit(
      [&](const auto& packed) {
        for (std::size_t col = 0; col < packed.cols(); ++col) out[col] = element(packed, row, col);
      },
      matrix);
}

void multiply(const kernels::Table& kernels, const WeightMatrix& matrix, Range panels, Matrix<const float> x,
              Matrix<float> y) {
  std::visit(
      [&]<class Element>(const PackedMatrix<Element>& packed) {
        call(kernels, kernels::Matmul<Element>{.panels = packed.data(),
                                               .rows = packed.rows(),
                                               .cols = packed.cols(),
                                               .first_panel = panels.begin,
                                               .last_panel = panels.end,
                                               .x = x.data,
                                               .x_stride = x.cols,
                                               .tokens = x.rows,
                                               .y = y.data,
                                               .y_stride = y.cols});
      },
      matrix);
}

}  // namespace minimind
