#include "weights/stored_numbers.h"

#include <fmt/core.h>

#include "weights/error.h"

namespace minimind {

void refuse_stored_type(const StoredTensor& tensor) {
  throw Error(fmt::format("{}: a tensor is stored as {}, wanted f32, f16 or bf16", tensor.file, name_of(tensor.dtype)));
}

std::vector<float> to_floats(const StoredTensor& tensor) {
  return with_stored_type(tensor, [&]<class Stored>(Stored) {
    std::vector<float> values(tensor.data.size() / sizeof(Stored));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = to_f32(load_element<Stored>(tensor.data.data(), i));
    return values;
  });
}

}  // namespace minimind
