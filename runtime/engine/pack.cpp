#include "runtime/engine/pack.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "runtime/engine/thread_team.h"
#include "weights/base/error.h"
#include "weights/base/parallel.h"
#include "weights/tensor/block_formats.h"
#include "weights/tensor/encode_values.h"
#include "weights/tensor/shape.h"
#include "weights/tensor/stored_numbers.h"

namespace minimind {
namespace {

using kernels::panel_rows;

std::size_t row_bytes(DType type, std::size_t cols) {
  const BlockShape block = block_shape(type);
  return cols / block.elements * block.bytes;
}

// Returns an uninitialised matrix. Throws Error if rows x cols overflows, std::bad_alloc if memory is unavailable.
WeightMatrix allocate_matrix(const MatrixFormat& format, std::size_t rows, std::size_t cols, HugePageArena& memory) {
  const auto size =
      cols <= format.most_cols ? checked_product(kernels::panel_count(rows), format.panel_bytes(cols)) : std::nullopt;
  if (!size) throw Error(fmt::format("a matrix of {} x {} is too large for {}", rows, cols, name_of(format.type)));
  return {format, rows, cols, memory.take(*size)};
}

// Converts up to 16 rows of a tensor in another encoding, which start at `source` and are `source_size` bytes apart, a
// few columns at a time unless the format takes whole rows.
void convert_panel(const StoredTensor& tensor, const std::byte* source, std::size_t source_size, std::size_t rows,
                   const MatrixFormat& format, std::byte* out) {
  constexpr std::size_t whole_blocks = 256;  // of any type
  const DType type = format.laid_out_from;
  const std::size_t cols = tensor.shape[1], most_cols = format.type == type ? std::min(cols, whole_blocks) : cols;
  const std::size_t row_size = row_bytes(type, most_cols);
  std::vector<float> values(most_cols);
  std::vector<std::byte> converted(panel_rows * row_size);
  for (std::size_t first = 0; first < cols; first += most_cols, out += format.panel_bytes(most_cols)) {
    const std::size_t count = std::min(most_cols, cols - first);
    for (std::size_t i = 0; i < rows; ++i) {
      convert_to_floats(tensor, source + i * source_size + row_bytes(tensor.dtype, first), count, values.data());
      encode_values(type, values.data(), count, converted.data() + i * row_size);
    }
    format.lay_out(converted.data(), row_size, rows, count, out);
  }
}

// As many bytes are still in the cache when they are laid out, and take longer to read than a system call.
constexpr std::size_t bytes_per_read = 128 << 10;

// Writes rows [first_row, last_row) of a stored matrix into their panels. first_row must start a panel. Rows in a file
// are read to `buffer`, some panels at a time.
void pack_rows(const StoredTensor& tensor, std::size_t first_row, std::size_t last_row, const WeightMatrix& matrix,
               std::vector<std::byte>& buffer) {
  const MatrixFormat& format = matrix.format();
  const std::size_t cols = tensor.shape[1], row_size = row_bytes(tensor.dtype, cols);
  const std::size_t panel_size = std::max<std::size_t>(1, panel_rows * row_size);
  const std::size_t rows_per_read = panel_rows * std::max<std::size_t>(1, bytes_per_read / panel_size);
  const std::byte* source = nullptr;
  for (std::size_t row = first_row; row < last_row; row += panel_rows, source += panel_rows * row_size) {
    if ((row - first_row) % rows_per_read == 0) {
      source = tensor.data.read(row * row_size, std::min(rows_per_read, last_row - row) * row_size, buffer);
    }
    std::byte* const out = matrix.panel(row / panel_rows);
    const std::size_t rows = std::min(panel_rows, last_row - row);
    if (rows < panel_rows) std::memset(out, 0, matrix.panel_bytes());
    if (tensor.dtype == format.laid_out_from) {
      format.lay_out(source, row_size, rows, cols, out);
    } else {
      convert_panel(tensor, source, row_size, rows, format, out);
    }
  }
}

}  // namespace

DType packed_type(const StoredTensor& tensor, WeightType type, std::size_t threads) {
  if (!is_float_type(tensor.dtype) && !is_block_type(tensor.dtype)) reject_stored_type(tensor);
  const DType as_stored = find_matrix_format(tensor.dtype) ? tensor.dtype : DType::f32;
  if (!type) return as_stored;
  assert(find_matrix_format(*type));
  if (find_matrix_format(*type)->laid_out_from != *type) return *type;  // takes rows of any size
  return type_or_fallback(*type, as_stored, tensor.shape[1],
                          [&](DType wanted) { return can_encode(tensor, wanted, threads); });
}

WeightMatrix Packer::add(const StoredTensor& tensor, DType packed, Compute compute) {
  constexpr std::size_t rows_per_job = 16 * panel_rows;
  const bool of_bf16 = compute == Compute::bf16;
  assert(!of_bf16 || packed == DType::f16 || packed == DType::bf16);
  const MatrixFormat* const format = find_matrix_format(of_bf16 ? DType::bf16 : packed, of_bf16);
  const WeightMatrix matrix = allocate_matrix(*format, tensor.shape[0], tensor.shape[1], memory_);
  for (std::size_t first = 0; first < matrix.rows(); first += rows_per_job) {
    const std::size_t last = std::min(first + rows_per_job, matrix.rows());
    jobs_.push_back([&tensor, first, last, matrix](std::vector<std::byte>& buffer) {
      pack_rows(tensor, first, last, matrix, buffer);
    });
  }
  return matrix;
}

void Packer::finish(std::size_t threads) {
  SharedJobs jobs(jobs_.size());
  run_team(threads, [&](Worker&) {
    std::vector<std::byte> buffer;
    jobs.run([&](std::size_t i) { jobs_[i](buffer); });
  });
  jobs_.clear();
  jobs.rethrow_failure();
}

}  // namespace minimind
