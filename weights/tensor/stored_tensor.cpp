#include "weights/tensor/stored_tensor.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace minimind {

StoredBytes StoredBytes::part(std::size_t first, std::size_t count) const {
  assert(first <= size_ && count <= size_ - first);
  StoredBytes part = *this;
  if (file_) {
    part.offset_ += first;
  } else if (count > 0) {
    part.memory_ += first;
  }
  part.size_ = count;
  return part;
}

const std::byte* StoredBytes::read(std::size_t first, std::size_t count, std::vector<std::byte>& buffer) const {
  assert(first <= size_ && count <= size_ - first);
  if (!file_) return memory_ + first;
  if (buffer.size() < count) buffer.resize(count);
  file_->read(offset_ + first, std::span(buffer).first(count));
  return buffer.data();
}

std::vector<std::byte> StoredBytes::read_all() const {
  std::vector<std::byte> buffer;
  const std::byte* const bytes = read(0, size_, buffer);
  if (!file_) buffer.assign(bytes, bytes + size_);
  return buffer;
}

bool StoredBytes::equals(const StoredBytes& other) const {
  constexpr std::size_t piece = std::size_t{1} << 18;
  if (size_ != other.size_) return false;
  if (file_ == other.file_ && offset_ == other.offset_ && memory_ == other.memory_) return true;
  std::vector<std::byte> mine, others;
  for (std::size_t first = 0; first < size_; first += piece) {
    const std::size_t count = std::min(piece, size_ - first);
    if (std::memcmp(read(first, count, mine), other.read(first, count, others), count) != 0) return false;
  }
  return true;
}

StoredTensor slice_rows(const StoredTensor& tensor, std::size_t first, std::size_t last) {
  StoredTensor part = tensor;
  const std::size_t bytes_per_row = tensor.data.size() / tensor.shape[0];
  part.data = tensor.data.part(first * bytes_per_row, (last - first) * bytes_per_row);
  part.shape[0] = last - first;
  if (part.shape.size() > 2 && part.shape[0] == 1) part.shape.erase(part.shape.begin());
  return part;
}

}  // namespace minimind
