#include "weights/tensor/choose_type.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "weights/tensor/stored_numbers.h"

namespace minimind {
namespace {

float rounded_to(DType type, float value) {
  if (type == DType::f16) return to_f32(to_f16(value));
  if (type == DType::bf16) return to_f32(to_bf16(value));
  return value;
}

}  // namespace

bool TypeChooser::fits(const OutputTensor& tensor, DType type) const {
  return std::all_of(tensor.sources.begin(), tensor.sources.end(),
                     [&](const StoredTensor* source) { return can_encode(*source, type, threads_); });
}

// f32 where the file cannot have the stored type, or where the sources differ.
DType TypeChooser::stored_type(const OutputTensor& tensor) const {
  const DType type = tensor.sources.front()->dtype;
  const bool same = std::all_of(tensor.sources.begin(), tensor.sources.end(),
                                [&](const StoredTensor* source) { return source->dtype == type; });
  return same && (block_types_ || !is_block_type(type)) ? type : DType::f32;
}

void TypeChooser::choose(OutputTensor& tensor, std::optional<DType> wanted) {
  const DType stored = stored_type(tensor);
  tensor.dtype = wanted.value_or(stored);
  if (!wanted || fits(tensor, *wanted)) return;
  const std::size_t cols = tensor.sources.front()->shape.back(), block = block_shape(*wanted).elements;
  const std::string why = cols % block != 0 ? fmt::format("its {} columns are no multiple of {}", cols, block)
                                            : fmt::format("it has numbers that {} cannot hold", name_of(*wanted));
  const bool f16_would_do = is_block_type(*wanted) && fits(tensor, DType::f16);
  tensor.dtype = f16_would_do ? DType::f16 : is_float_type(stored) && fits(tensor, stored) ? stored : DType::f32;
  exceptions_.push_back(fmt::format("{} as {}: {}", tensor.name, name_of(tensor.dtype), why));
}

bool holds_exactly(const StoredTensor& tensor, DType type) {
  const std::vector<float> values = to_floats(tensor);
  return std::all_of(values.begin(), values.end(), [&](float value) {
    return std::bit_cast<std::uint32_t>(rounded_to(type, value)) == std::bit_cast<std::uint32_t>(value);
  });
}

}  // namespace minimind
