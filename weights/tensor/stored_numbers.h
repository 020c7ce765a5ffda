#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "weights/tensor/half.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// Element `index` of an array of T at `data`, which need not be aligned.
template <class T>
T load_element(const std::byte* data, std::size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

// Throws Error: a tensor of this type cannot be computed with.
[[noreturn]] void refuse_stored_type(const StoredTensor& tensor);

// Calls use(T{}) with the type that the tensor's bytes are: float, F16 or Bf16. Throws Error for any other.
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
      refuse_stored_type(tensor);
  }
}

// Numbers [first, first + count) of an f32, f16, bf16 or block-type tensor as floats. Of a block type, both must be
// whole blocks.
void read_floats(const StoredTensor& tensor, std::size_t first, std::size_t count, float* out);

// All values of such a tensor, in order.
std::vector<float> to_floats(const StoredTensor& tensor);

}  // namespace minimind
