#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "weights/base/parallel.h"
#include "weights/tensor/shape.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// A tensor as rows of equal length.
struct Rows {
  std::size_t count = 0;
  std::size_t cols = 0;
};

inline Rows rows_of(const std::vector<std::size_t>& shape) {
  const std::size_t cols = shape.empty() ? 1 : shape.back();
  const std::size_t elements = element_count(shape).value();
  return {cols == 0 ? 0 : elements / cols, cols};
}

// Calls work(first, last) for ranges that together are [0, count).
template <class Work>
void run_ranges(std::size_t count, std::size_t threads, const Work& work) {
  constexpr std::size_t parts_per_thread = 4;  // more than one, so that a delayed thread does not delay the others
  const std::size_t parts = std::min(count, threads * parts_per_thread);
  in_parallel(parts, threads, [&](std::size_t part) { work(count * part / parts, count * (part + 1) / parts); });
}

// The rows of a stored tensor, of which those near the last one are in memory.
class RowWindow {
 public:
  // Returns row `row` of the `count` rows of `source`; valid until the next call.
  const std::byte* row(const StoredTensor& source, std::size_t row, std::size_t count) {
    const std::size_t size = source.data.size() / count;
    if (&source != source_ || row < first_ || row >= end_) {
      first_ = row;
      end_ = std::min(count, row + std::max<std::size_t>(window_bytes / std::max<std::size_t>(size, 1), 1));
      source_ = nullptr;
      bytes_ = source.data.read(first_ * size, (end_ - first_) * size, buffer_);
      source_ = &source;
    }
    return bytes_ + (row - first_) * size;
  }

 private:
  static constexpr std::size_t window_bytes = std::size_t{1} << 18;

  const StoredTensor* source_ = nullptr;
  std::size_t first_ = 0, end_ = 0;
  const std::byte* bytes_ = nullptr;
  std::vector<std::byte> buffer_;
};

}  // namespace minimind
