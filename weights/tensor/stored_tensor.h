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

// A named array in a checkpoint: row-major and contiguous. `data` points into the mapped file wherever that is
// possible and need not be aligned to the element: read elements with memcpy.
struct StoredTensor {
  DType dtype = DType::f32;
  std::vector<std::size_t> shape;   // outermost first; empty for a scalar
  std::span<const std::byte> data;  // exactly byte_count(shape, dtype) bytes
  std::string file;                 // path of the file it came from, for error messages
  // What keeps `data` alive: the mapped file, or a copy if one had to be made. Exactly one is set.
  std::shared_ptr<const MappedFile> mapping;
  std::shared_ptr<const std::vector<std::byte>> copy;
};

// No model comes near so many tensors: what has more, or would have them once stacked experts are taken apart, is
// rejected.
inline constexpr std::size_t largest_tensor_count = 65536;

// Tensors by the names that the file gives them.
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
