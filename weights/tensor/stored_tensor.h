#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weights/io/input_file.h"
#include "weights/tensor/dtype.h"

namespace minimind {

// The bytes of a tensor: in memory, or a part of a file that is read when it is needed.
class StoredBytes {
 public:
  StoredBytes() = default;
  // Bytes in memory; null `owner`: the caller keeps them.
  StoredBytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
      : memory_(bytes.data()), size_(bytes.size()), owner_(std::move(owner)) {}
  explicit StoredBytes(std::vector<std::byte> bytes)
      : StoredBytes(std::make_shared<const std::vector<std::byte>>(std::move(bytes))) {}
  explicit StoredBytes(const std::shared_ptr<const std::vector<std::byte>>& bytes) : StoredBytes(*bytes, bytes) {}
  // A part of a file, which must have it.
  StoredBytes(std::shared_ptr<const InputFile> file, FilePart part)
      : file_(std::move(file)), offset_(part.offset), size_(part.size) {}

  std::size_t size() const { return size_; }

  // The file that has the bytes, and where it has them; null if they are in memory.
  const InputFile* file() const { return file_.get(); }
  std::size_t offset() const { return offset_; }

  // Returns bytes [first, first + count), which must be among them.
  StoredBytes part(std::size_t first, std::size_t count) const;

  // Returns a pointer to bytes [first, first + count): where they are in memory, or in `buffer`, where they are read
  // to. Throws Error as InputFile::read does.
  const std::byte* read(std::size_t first, std::size_t count, std::vector<std::byte>& buffer) const;

  // Reads all of them.
  std::vector<std::byte> read_all() const;

  // Whether these bytes have the values of the others. Reads them unless they are the same.
  bool equals(const StoredBytes& other) const;

 private:
  const std::byte* memory_ = nullptr;
  std::shared_ptr<const InputFile> file_;
  std::size_t offset_ = 0;
  std::size_t size_ = 0;
  std::shared_ptr<const void> owner_;
};

// A named array in a checkpoint: row-major and contiguous. Its bytes may be unaligned to the element: read elements
// with memcpy.
struct StoredTensor {
  DType dtype = DType::f32;
  std::vector<std::size_t> shape;  // outermost first; empty for a scalar
  StoredBytes data;                // exactly byte_count(shape, dtype) bytes
  std::string file;                // path of the file it came from, for error messages
};

// Returns rows [first, last) of the outermost dimension, as a view. The tensor must have rows. One row of three or more
// dimensions is a tensor without the outermost dimension, such as a matrix of a stack.
StoredTensor slice_rows(const StoredTensor& tensor, std::size_t first, std::size_t last);

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
