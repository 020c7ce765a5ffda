#include "weights/tensor/stored_numbers.h"

#include <fmt/core.h>

#include "weights/io/error.h"
#include "weights/tensor/block_formats.h"
#include "weights/tensor/shape.h"

namespace minimind {

void reject_stored_type(const StoredTensor& tensor) {
  throw Error(
      fmt::format("{}: a tensor is stored as {}, expected f32, f16 or bf16", tensor.file, name_of(tensor.dtype)));
}

void read_floats(const StoredTensor& tensor, std::size_t first, std::size_t count, float* out) {
  if (is_block_type(tensor.dtype)) {
    const BlockShape block = block_shape(tensor.dtype);
    dequantize(tensor.dtype, tensor.data.data() + first / block.elements * block.bytes, count, out);
    return;
  }
  with_stored_type(tensor, [&]<class Stored>(Stored) {
    for (std::size_t i = 0; i < count; ++i) out[i] = to_f32(load_element<Stored>(tensor.data.data(), first + i));
  });
}

std::vector<float> to_floats(const StoredTensor& tensor) {
  std::vector<float> values(element_count(tensor.shape).value());
  read_floats(tensor, 0, values.size(), values.data());
  return values;
}

}  // namespace minimind
