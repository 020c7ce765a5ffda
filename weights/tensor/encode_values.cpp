#include "weights/tensor/encode_values.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "weights/tensor/block_formats.h"
#include "weights/tensor/half.h"
#include "weights/tensor/row_window.h"
#include "weights/tensor/stored_numbers.h"

namespace minimind {
namespace {

template <auto convert>
void put_numbers(const float* values, std::size_t count, std::byte* out) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = convert(values[i]);
    std::memcpy(out + i * sizeof number, &number, sizeof number);
  }
}

struct Magnitudes {
  float largest = 0;  // of the finite values
  bool all_finite = true;
};

// In each float type, magnitudes have the order of their bits without the sign, taken as integers.
template <class Stored>
Magnitudes magnitudes_of(const std::byte* numbers, std::size_t count) {
  using Bits = std::conditional_t<sizeof(Stored) == 4, std::int32_t, std::int16_t>;
  constexpr Bits without_sign = std::numeric_limits<Bits>::max();
  constexpr int infinity = std::is_same_v<Stored, F16> ? 0x7C00 : std::is_same_v<Stored, Bf16> ? 0x7F80 : 0x7F800000;
  Bits largest = 0, largest_finite = 0;
#pragma omp simd reduction(max : largest, largest_finite)
  for (std::size_t i = 0; i < count; ++i) {
    const Bits magnitude = static_cast<Bits>(load_element<Bits>(numbers, i) & without_sign);
    largest = std::max(largest, magnitude);
    largest_finite = std::max(largest_finite, magnitude < infinity ? magnitude : Bits{0});
  }
  return {to_f32(std::bit_cast<Stored>(largest_finite)), largest < infinity};
}

// Of a row of `cols` values.
Magnitudes row_magnitudes(const StoredTensor& source, const std::byte* row, std::size_t cols) {
  if (is_block_type(source.dtype)) {
    std::vector<float> values(cols);
    convert_to_floats(source, row, cols, values.data());
    return magnitudes_of<float>(reinterpret_cast<const std::byte*>(values.data()), cols);
  }
  return with_stored_type(source, [&]<class Stored>(Stored) { return magnitudes_of<Stored>(row, cols); });
}

bool can_hold(DType dtype, const Magnitudes& found) {
  switch (dtype) {
    case DType::f32:
      return true;
    case DType::f16:
      return std::isfinite(to_f32(to_f16(found.largest)));
    case DType::bf16:
      return std::isfinite(to_f32(to_bf16(found.largest)));
    default:
      return found.all_finite && std::isfinite(to_f32(to_f16(found.largest / block_format(dtype).scale_divisor)));
  }
}

// Returns true if any value of type `from` can be written as `to`.
bool always_fits(DType from, DType to) {
  return to == from || to == DType::f32 || (to == DType::bf16 && (from == DType::f16 || is_block_type(from)));
}

}  // namespace

DType type_or_fallback(DType wanted, DType lossless, std::size_t cols, const std::function<bool(DType)>& fits) {
  if (fits(wanted)) return wanted;
  if (cols % block_shape(wanted).elements == 0) return lossless;
  const std::optional<DType> shorter = block_format(wanted).shorter;
  if (shorter && fits(*shorter)) return *shorter;
  return fits(DType::f16) ? DType::f16 : lossless;
}

bool can_encode(const StoredTensor& source, DType dtype, std::size_t threads) {
  if (source.dtype == dtype) return true;
  const bool readable = is_float_type(source.dtype) || is_block_type(source.dtype);
  const bool writable = is_float_type(dtype) || can_quantize(dtype);
  const auto [rows, cols] = rows_of(source.shape);
  if (!readable || !writable || cols % block_shape(dtype).elements != 0) return false;
  if (always_fits(source.dtype, dtype)) return true;
  std::atomic<bool> fits{true};
  // As in encode: only block types are worth the threads.
  run_ranges(rows, is_block_type(source.dtype) ? threads : 1,
             [&, row_count = rows, row_size = cols](std::size_t first, std::size_t last) {
               RowWindow window;
               for (std::size_t row = first; row < last && fits; ++row) {
                 if (!can_hold(dtype, row_magnitudes(source, window.row(source, row, row_count), row_size)))
                   fits = false;
               }
             });
  return fits;
}

void encode_values(DType dtype, const float* values, std::size_t count, std::byte* out) {
  switch (dtype) {
    case DType::f32:
      std::memcpy(out, values, count * sizeof(float));
      return;
    case DType::f16:
      return put_numbers<to_f16>(values, count, out);
    case DType::bf16:
      return put_numbers<to_bf16>(values, count, out);
    default:
      return quantize(dtype, values, count, out);
  }
}

}  // namespace minimind
