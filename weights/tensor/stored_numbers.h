#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "weights/tensor/half.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// Reads element `index` of an array of T at `data`, which may be unaligned.
template <class T>
T load_element(const std::byte* data, std::size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

// Throws Error: a tensor of this type cannot be computed with.
[[noreturn]] void reject_stored_type(const StoredTensor& tensor);

// Calls use(T{}) with the type of the tensor's elements: float, F16 or Bf16. Throws Error for any other type.
template <class Use>
auto with_stored_type(const StoredTensor& tensor, Use use) {
  switch (tensor.dtype) {
    case DType::f32:
      return use(float{});
    case DType::f16:
      return use(F16{});
    case DType::bf16:
      return use(Bf16{});
    default:
      reject_stored_type(tensor);
  }
}

// Converts `count` values of an f32, f16, bf16 or block-type tensor that start at `data` to floats. For a block type,
// they must be whole blocks.
void convert_to_floats(const StoredTensor& tensor, const std::byte* data, std::size_t count, float* out);

// Reads values [first, first + count) of such a tensor as floats. For a block type, both must be multiples of the block
// size.
void read_floats(const StoredTensor& tensor, std::size_t first, std::size_t count, float* out);

// Returns all values of such a tensor, in order.
std::vector<float> to_floats(const StoredTensor& tensor);

}  // namespace minimind
