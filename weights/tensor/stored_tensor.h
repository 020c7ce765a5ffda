#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weights/io/mapped_file.h"
#include "weights/tensor/dtype.h"

namespace minimind {

// A named array in a checkpoint: row-major and contiguous. `data` points into the mapped file if possible. It may be
// unaligned to the element: read elements with memcpy.
struct StoredTensor {
  DType dtype = DType::f32;
  std::vector<std::size_t> shape;   // outermost first; empty for a scalar
  std::span<const std::byte> data;  // exactly byte_count(shape, dtype) bytes
  std::string file;                 // path of the file it came from, for error messages
  // The owner of `data`: the mapped file, or a copy if the file's layout requires one. Exactly one is set.
  std::shared_ptr<const MappedFile> mapping;
  std::shared_ptr<const std::vector<std::byte>> copy;
};

// The limit on tensors, also after stacked experts are split. Real models are far below it.
inline constexpr std::size_t largest_tensor_count = 65536;

// Tensors by their names in the file.
using StoredTensors = std::map<std::string, StoredTensor>;

// "[768, 2432]"
inline std::string shape_text(const std::vector<std::size_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i == 8) return text + ", ...]";
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace minimind
