#include "weights/tensor/block_formats.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "weights/base/error.h"
#include "weights/tensor/extremes.h"
#include "weights/tensor/half.h"

namespace minimind {
namespace {

// A block as it is in a file.
struct Q8_0 {
  F16 scale;
  std::int8_t codes[quantized_values];
};
static_assert(sizeof(Q8_0) == block_shape(DType::q8_0).bytes);

void read_q8_0(DType, const std::byte* blocks, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; i += quantized_values, blocks += sizeof(Q8_0)) {
    Q8_0 block;
    std::memcpy(&block, blocks, sizeof block);
    const float scale = to_f32(block.scale);
    for (std::size_t k = 0; k < quantized_values; ++k) out[i + k] = scale * static_cast<float>(block.codes[k]);
  }
}

void write_q8_0(DType, const float* values, std::size_t count, std::byte* out) {
  for (std::size_t i = 0; i < count; i += quantized_values, values += quantized_values, out += sizeof(Q8_0)) {
    const float scale = std::fabs(extreme_of(values)) / 127.0f;
    const float inverse = inverse_of(scale);
    Q8_0 block;
    block.scale = to_f16(scale);
#pragma omp simd
    for (std::size_t k = 0; k < quantized_values; ++k) {
      // Truncates instead of std::round, which would be a call for each value: the remainder is exact.
      const float scaled = std::clamp(values[k] * inverse, -127.0f, 127.0f);
      const int whole = static_cast<int>(scaled);
      const float rest = scaled - static_cast<float>(whole);
      block.codes[k] = static_cast<std::int8_t>(whole + (rest >= 0.5f) - (rest <= -0.5f));
    }
    std::memcpy(out, &block, sizeof block);
  }
}

// As the `gguf` package writes it.
constexpr BlockFormat q8_0_format{read_q8_0, write_q8_0, 127};

std::optional<BlockFormat> find_format(DType type) {
  return type == DType::q8_0 ? q8_0_format : more_block_format(type);
}

}  // namespace

BlockFormat block_format(DType type) {
  if (const auto format = find_format(type)) return *format;
  throw Error(fmt::format("this program does not have blocks of {}", name_of(type)));
}

bool can_quantize(DType type) {
  const auto format = find_format(type);
  return format && format->quantize;
}

void dequantize(DType type, const std::byte* blocks, std::size_t count, float* out) {
  block_format(type).dequantize(type, blocks, count, out);
}

void quantize(DType type, const float* values, std::size_t count, std::byte* out) {
  if (!can_quantize(type)) throw Error(fmt::format("{} cannot be written", name_of(type)));
  block_format(type).quantize(type, values, count, out);
}

}  // namespace minimind
