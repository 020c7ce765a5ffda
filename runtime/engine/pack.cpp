#include "runtime/engine/pack.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <variant>

#include "runtime/engine/put_block.h"
#include "runtime/engine/thread_team.h"
#include "weights/base/error.h"
#include "weights/tensor/block_formats.h"
#include "weights/tensor/encode_values.h"
#include "weights/tensor/shape.h"
#include "weights/tensor/stored_numbers.h"

namespace minimind {
namespace {

using kernels::Bf16Block;
using kernels::block_cols;
using kernels::panel_rows;

constexpr std::size_t row_bytes(DType type, std::size_t cols) {
  const BlockShape block = block_shape(type);
  return cols / block.elements * block.bytes;
}

// Returns an uninitialised matrix. Throws Error if rows x cols overflows, std::bad_alloc if memory is unavailable.
template <class Element>
PackedMatrix<Element> allocate_matrix(std::size_t rows, std::size_t cols, HugePageArena& memory) {
  const auto elements = checked_product(kernels::panel_count(rows), elements_of<Element>(cols));
  const auto size = elements ? checked_product(*elements, sizeof(Element)) : std::nullopt;
  if (!size || cols > SIZE_MAX / panel_rows)
    throw Error(fmt::format("a matrix of {} x {} values is too large", rows, cols));
  const std::shared_ptr<std::byte> bytes = memory.take(*size);
  return {rows, cols, {bytes, reinterpret_cast<Element*>(bytes.get())}};
}

// Writes up to 16 rows, stored in the encoding of Element and `row_size` bytes apart, into their panel.
template <class Element>
void lay_out(const std::byte* source, std::size_t row_size, std::size_t rows, std::size_t cols, Element* out) {
  if constexpr (is_block_type(stored_type<Element>)) {
    constexpr BlockShape block_size = block_shape(stored_type<Element>);
    static_assert(10 * sizeof(Element) <= 11 * block_size.bytes * panel_rows);
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t block = 0; block < cols / block_size.elements; ++block) {
        put_block(source + row * row_size + block * block_size.bytes, row, out[block]);
      }
    }
  } else if constexpr (is_bf16_block<Element>) {
    if (cols % block_cols != 0) out[cols / block_cols] = {};
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t col = 0; col < cols; ++col) {
        out[col / block_cols].value[col % block_cols / 2][row][col % 2] =
            load_element<std::uint16_t>(source + row * row_size, col);
      }
    }
  } else {
    for (std::size_t col = 0; col < cols; ++col) {
      for (std::size_t row = 0; row < rows; ++row) {
        out[col * panel_rows + row] = load_element<Element>(source + row * row_size, col);
      }
    }
  }
}

// Converts up to 16 rows of a tensor in another encoding, which start at `source` and are `source_size` bytes apart, a
// few columns at a time.
template <class Element>
void convert_panel(const StoredTensor& tensor, const std::byte* source, std::size_t source_size, std::size_t rows,
                   Element* out) {
  constexpr std::size_t most_cols = 256;  // whole blocks of any type
  constexpr std::size_t row_size = row_bytes(stored_type<Element>, most_cols);
  const std::size_t cols = tensor.shape[1];
  float values[most_cols];
  std::byte converted[panel_rows * row_size];
  for (std::size_t first = 0; first < cols; first += most_cols, out += elements_of<Element>(most_cols)) {
    const std::size_t count = std::min(most_cols, cols - first);
    for (std::size_t i = 0; i < rows; ++i) {
      convert_to_floats(tensor, source + i * source_size + row_bytes(tensor.dtype, first), count, values);
      encode_values(stored_type<Element>, values, count, converted + i * row_size);
    }
    lay_out(converted, row_size, rows, count, out);
  }
}

// Writes rows [first_row, last_row) of a stored matrix into their panels. first_row must start a panel. Rows in a file
// are read to `buffer`, a panel at a time, so that they are still in the cache when they are laid out.
template <class Element>
void pack_rows(const StoredTensor& tensor, std::size_t first_row, std::size_t last_row, Element* out,
               std::vector<std::byte>& buffer) {
  const std::size_t cols = tensor.shape[1], row_size = row_bytes(tensor.dtype, cols);
  for (std::size_t row = first_row; row < last_row; row += panel_rows, out += elements_of<Element>(cols)) {
    const std::size_t rows = std::min(panel_rows, last_row - row);
    if (rows < panel_rows) std::memset(static_cast<void*>(out), 0, elements_of<Element>(cols) * sizeof(Element));
    const std::byte* const source = tensor.data.read(row * row_size, rows * row_size, buffer);
    if (tensor.dtype == stored_type<Element>) {
      lay_out(source, row_size, rows, cols, out);
    } else {
      convert_panel(tensor, source, row_size, rows, out);
    }
  }
}

}  // namespace

DType packed_type(const StoredTensor& tensor, WeightType type, std::size_t threads) {
  if (!is_float_type(tensor.dtype) && !is_block_type(tensor.dtype)) reject_stored_type(tensor);
  const DType as_stored = has_kernel(tensor.dtype) ? tensor.dtype : DType::f32;
  if (!type) return as_stored;
  assert(has_kernel(*type));
  return type_or_fallback(*type, as_stored, tensor.shape[1],
                          [&](DType wanted) { return can_encode(tensor, wanted, threads); });
}

template <class Element>
WeightMatrix Packer::add_as(const StoredTensor& tensor) {
  constexpr std::size_t rows_per_job = 16 * panel_rows;
  auto packed = allocate_matrix<Element>(tensor.shape[0], tensor.shape[1], memory_);
  for (std::size_t first = 0; first < packed.rows(); first += rows_per_job) {
    const std::size_t last = std::min(first + rows_per_job, packed.rows());
    jobs_.push_back([&tensor, first, last, out = packed.panel(first / panel_rows)](std::vector<std::byte>& buffer) {
      pack_rows<Element>(tensor, first, last, out, buffer);
    });
  }
  return packed;
}

WeightMatrix Packer::add(const StoredTensor& tensor, DType packed, Compute compute) {
  if (compute == Compute::bf16) {
    assert(packed == DType::f16 || packed == DType::bf16);
    return add_as<Bf16Block>(tensor);
  }
  std::optional<WeightMatrix> matrix;
  const auto try_element = [&]<class Element>(const PackedMatrix<Element>*) {
    if (!is_bf16_block<Element> && stored_type<Element> == packed) matrix = add_as<Element>(tensor);
  };
  [&]<class... Matrix>(const std::variant<Matrix...>*) {
    (try_element(static_cast<const Matrix*>(nullptr)), ...);
  }(static_cast<const WeightMatrix*>(nullptr));
  return std::move(matrix).value();
}

void Packer::finish(std::size_t threads) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  run_team(threads, [&](Worker&) {
    try {
      std::vector<std::byte> buffer;
      for (std::size_t i = next++; i < jobs_.size(); i = next++) jobs_[i](buffer);
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
      next = jobs_.size();
    }
  });
  jobs_.clear();
  if (failure) std::rethrow_exception(failure);
}

WeightMatrix pack(const StoredTensor& tensor, WeightType type, std::size_t threads, Compute compute) {
  HugePageArena memory;
  Packer packer(memory);
  WeightMatrix matrix = packer.add(tensor, packed_type(tensor, type, threads), compute);
  packer.finish(threads);
  return matrix;
}

}  // namespace minimind
