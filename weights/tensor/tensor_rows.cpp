#include "weights/tensor/tensor_rows.h"

#include <cstring>
#include <utility>

namespace minimind {

StoredTensor slice_columns(const StoredTensor& matrix, std::size_t first, std::size_t last) {
  const BlockShape block = block_shape(matrix.dtype);
  const std::size_t bytes_per_row = matrix.data.size() / matrix.shape[0];
  const std::size_t offset = first / block.elements * block.bytes;
  const std::size_t size = (last - first) / block.elements * block.bytes;
  std::vector<std::byte> buffer;
  const std::byte* const all = matrix.data.read(0, matrix.data.size(), buffer);
  std::vector<std::byte> bytes(matrix.shape[0] * size);
  for (std::size_t row = 0; row < matrix.shape[0]; ++row) {
    std::memcpy(bytes.data() + row * size, all + row * bytes_per_row + offset, size);
  }
  StoredTensor part = matrix;
  part.data = StoredBytes(std::move(bytes));
  part.shape[1] = last - first;
  return part;
}

StoredTensor reorder_rows(const StoredTensor& matrix, std::span<const std::size_t> order) {
  const std::size_t bytes_per_row = matrix.data.size() / matrix.shape[0];
  const std::vector<std::byte> all = matrix.data.read_all();
  std::vector<std::byte> bytes(order.size() * bytes_per_row);
  for (std::size_t row = 0; row < order.size(); ++row) {
    std::memcpy(bytes.data() + row * bytes_per_row, all.data() + order[row] * bytes_per_row, bytes_per_row);
  }
  StoredTensor result = matrix;
  result.data = StoredBytes(std::move(bytes));
  return result;
}

std::vector<std::size_t> halves_to_adjacent_pairs(std::size_t rows, std::size_t head_dim) {
  std::vector<std::size_t> order(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t at = row % head_dim;
    order[row] = row - at + at % 2 * (head_dim / 2) + at / 2;
  }
  return order;
}

std::vector<std::size_t> adjacent_pairs_to_halves(std::size_t rows, std::size_t head_dim) {
  std::vector<std::size_t> order(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t at = row % head_dim;
    order[row] = row - at + at % (head_dim / 2) * 2 + at / (head_dim / 2);
  }
  return order;
}

}  // namespace minimind
