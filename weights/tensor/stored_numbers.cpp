#include "weights/tensor/stored_numbers.h"

#include <fmt/core.h>

#include <algorithm>

#include "weights/base/error.h"
#include "weights/tensor/block_formats.h"
#include "weights/tensor/shape.h"

namespace minimind {

void reject_stored_type(const StoredTensor& tensor) {
  throw Error(
      fmt::format("{}: a tensor is stored as {}, expected f32, f16 or bf16", tensor.file, name_of(tensor.dtype)));
}

void convert_to_floats(const StoredTensor& tensor, const std::byte* data, std::size_t count, float* out) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "stored values are taken as they are in memory");
  if (is_block_type(tensor.dtype)) return dequantize(tensor.dtype, data, count, out);
  with_stored_type(tensor, [&]<class Stored>(Stored) {
    for (std::size_t i = 0; i < count; ++i) out[i] = to_f32(load_element<Stored>(data, i));
  });
}

void read_floats(const StoredTensor& tensor, std::size_t first, std::size_t count, float* out) {
  constexpr std::size_t piece = 16384;  // whole blocks of any type, few enough for the cache
  const BlockShape block = block_shape(tensor.dtype);
  std::vector<std::byte> buffer;
  for (std::size_t done = 0; done < count; done += piece) {
    const std::size_t now = std::min(piece, count - done);
    const std::byte* const data =
        tensor.data.read((first + done) / block.elements * block.bytes, now / block.elements * block.bytes, buffer);
    convert_to_floats(tensor, data, now, out + done);
  }
}

std::vector<float> to_floats(const StoredTensor& tensor) {
  std::vector<float> values(element_count(tensor.shape).value());
  read_floats(tensor, 0, values.size(), values.data());
  return values;
}

}  // namespace minimind
