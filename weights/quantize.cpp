#include "weights/quantize.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "weights/error.h"

namespace minimind {
namespace {

// A scale whose inverse overflows is 0 as a binary16, so the quants do not matter; 0 keeps them defined.
float inverse_of(float scale) {
  const float inverse = scale == 0 ? 0 : 1.0f / scale;
  return std::isfinite(inverse) ? inverse : 0;
}

}  // namespace

Q8_0 quantize_q8_0(const float (&values)[quant_block_size]) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  const float scale = largest / 127.0f;
  const float inverse = inverse_of(scale);
  Q8_0 block{to_f16(scale), {}};
  for (std::size_t i = 0; i < quant_block_size; ++i) {
    const float rounded = std::round(values[i] * inverse);
    block.quant[i] = static_cast<std::int8_t>(std::clamp(rounded, -127.0f, 127.0f));
  }
  return block;
}

// The number of largest magnitude becomes exactly -8, so that its sign decides the scale's.
Q4_0 quantize_q4_0(const float (&values)[quant_block_size]) {
  float extreme = values[0];
  for (const float value : values) {
    if (std::fabs(value) > std::fabs(extreme)) extreme = value;
  }
  const float scale = extreme / -8.0f;
  const float inverse = inverse_of(scale);
  Q4_0 block{to_f16(scale), {}};
  for (std::size_t i = 0; i < quant_block_size; ++i) {
    const float shifted = std::trunc(values[i] * inverse + 8.5f);
    block.quant[i] = static_cast<std::uint8_t>(std::clamp(shifted, 0.0f, 15.0f));
  }
  return block;
}

void dequantize(DType type, const std::byte*, std::size_t, float*) {
  throw Error(fmt::format("{} cannot be read yet", name_of(type)));
}

void quantize(DType type, const float*, std::size_t, std::byte*) {
  throw Error(fmt::format("{} cannot be written yet", name_of(type)));
}

}  // namespace minimind
