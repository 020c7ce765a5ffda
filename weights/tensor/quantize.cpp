#include "weights/tensor/quantize.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "weights/io/error.h"

namespace minimind {
namespace {

constexpr std::size_t block_size = 32;
using Byte = std::uint8_t;

// A scale whose inverse overflows is 0 as a binary16, so the quants do not matter; 0 keeps them defined.
float inverse_of(float scale) {
  const float inverse = scale == 0 ? 0 : 1.0f / scale;
  return std::isfinite(inverse) ? inverse : 0;
}

void write_scale(F16 scale, Byte* out) {
  std::memcpy(out, &scale, sizeof scale);
}

// Number i in the low half of byte i, number i + 16 in its high half.
void write_nibbles(const Byte (&quants)[block_size], Byte* out) {
  for (std::size_t i = 0; i < block_size / 2; ++i) {
    out[i] = static_cast<Byte>(quants[i] | quants[i + block_size / 2] << 4);
  }
}

// The number of largest magnitude, of equals the first.
float extreme_of(const float* values) {
  float highest = values[0], lowest = values[0];
#pragma omp simd reduction(max : highest) reduction(min : lowest)
  for (std::size_t i = 0; i < block_size; ++i) {
    highest = std::max(highest, values[i]);
    lowest = std::min(lowest, values[i]);
  }
  if (highest != -lowest) return highest > -lowest ? highest : lowest;
  return *std::find_if(values, values + block_size, [&](float value) { return std::fabs(value) == highest; });
}

void write_q8_0(const float* values, Byte* out) {
  const float scale = std::fabs(extreme_of(values)) / 127.0f;
  const float inverse = inverse_of(scale);
  write_scale(to_f16(scale), out);
#pragma omp simd
  for (std::size_t i = 0; i < block_size; ++i) {
    // std::round, which would be a call for each number: what is cut off is exact.
    const float scaled = std::clamp(values[i] * inverse, -127.0f, 127.0f);
    const int whole = static_cast<int>(scaled);
    const float rest = scaled - static_cast<float>(whole);
    out[2 + i] = static_cast<Byte>(whole + (rest >= 0.5f) - (rest <= -0.5f));
  }
}

// The number of largest magnitude becomes exactly -8, so that its sign decides the scale's.
void write_q4_0(const float* values, Byte* out) {
  const float scale = extreme_of(values) / -8.0f;
  const float inverse = inverse_of(scale);
  write_scale(to_f16(scale), out);
  Byte quants[block_size];
#pragma omp simd
  for (std::size_t i = 0; i < block_size; ++i) {
    quants[i] = static_cast<Byte>(std::clamp(values[i] * inverse + 8.5f, 0.0f, 15.0f));
  }
  write_nibbles(quants, out + 2);
}

// As many whole numbers as fill a register of any x86-64 or 64-bit ARM machine. GCC makes much more of such vectors
// than of loops with 15 comparisons inside.
constexpr std::size_t lanes = 8;
using Vector = std::int16_t __attribute__((vector_size(lanes * sizeof(std::int16_t))));

// Of numbers given as twice their values rounded down: the sum of step(k) over all k for which a number is not below
// the middle between code k and the next. All middles are multiples of 1/2.
template <class Step, std::size_t... k>
Vector sum_of_steps(Vector doubled, Step step, std::index_sequence<k...>) {
  return (((doubled >= std::int16_t{iq4_nl_codes[k] + iq4_nl_codes[k + 1]}) & step(k)) + ...);
}

template <class Step>
void sum_steps(const std::int16_t (&doubled)[block_size], Step step, std::int16_t (&sums)[block_size]) {
  constexpr auto middles = std::make_index_sequence<std::size(iq4_nl_codes) - 1>();
  for (std::size_t i = 0; i < block_size; i += lanes) {
    Vector vector;
    std::memcpy(&vector, doubled + i, sizeof vector);
    vector = sum_of_steps(vector, step, middles);
    std::memcpy(sums + i, &vector, sizeof vector);
  }
}

// The nearest codes, less the first.
void find_codes(const std::int16_t (&doubled)[block_size], std::int16_t (&codes)[block_size]) {
  sum_steps(
      doubled, [](std::size_t k) { return static_cast<std::int16_t>(iq4_nl_codes[k + 1] - iq4_nl_codes[k]); }, codes);
}

// Their places in the code book.
void find_quants(const std::int16_t (&doubled)[block_size], std::int16_t (&quants)[block_size]) {
  sum_steps(
      doubled, [](std::size_t) { return std::int16_t{1}; }, quants);
}

// What the number of largest magnitude is tried as: around the last codes of either sign, for it may be worth while to
// cut it off, or to leave the last code unused. These eight come within 0.2 % of the error of 142 tries.
constexpr int tried_extremes[] = {-136, -127, -118, -109, 96, 104, 112, 120};

// The scale of the smallest squared error, if codes are chosen for one of the tries and the scale then for the codes.
// In whole numbers, whose sums are the same in any order.
float best_iq4_nl_scale(const float* values) {
  constexpr float one = 32767;  // the largest magnitude as a 16-bit number
  const float extreme = extreme_of(values);
  const float inverse = inverse_of(extreme / one);
  std::int16_t numbers[block_size];
#pragma omp simd
  for (std::size_t i = 0; i < block_size; ++i) numbers[i] = static_cast<std::int16_t>(values[i] * inverse);
  double best_gain = 0, best_scale = 0;
  for (const int tried : tried_extremes) {
    std::int16_t doubled[block_size], codes[block_size];
#pragma omp simd
    for (std::size_t i = 0; i < block_size; ++i) doubled[i] = static_cast<std::int16_t>(numbers[i] * (4 * tried) >> 16);
    find_codes(doubled, codes);
    std::int32_t products = 0, squares = 0;
#pragma omp simd reduction(+ : products, squares)
    for (std::size_t i = 0; i < block_size; ++i) {
      const std::int16_t code = static_cast<std::int16_t>(codes[i] + iq4_nl_codes[0]);
      products += numbers[i] * code;
      squares += code * code;
    }
    // |numbers - scale * codes|^2 is smallest at scale = products / squares, and smaller than |numbers|^2 by the gain.
    const double scale = static_cast<double>(products) / squares;
    const double gain = scale * products;
    if (gain > best_gain) {
      best_gain = gain;
      best_scale = scale;
    }
  }
  return static_cast<float>(best_scale * extreme / one);
}

void write_iq4_nl(const float* values, Byte* out) {
  const F16 scale = to_f16(best_iq4_nl_scale(values));
  const float inverse = inverse_of(to_f32(scale));
  write_scale(scale, out);
  std::int16_t doubled[block_size], quants[block_size];
#pragma omp simd
  for (std::size_t i = 0; i < block_size; ++i) {
    constexpr int below_all = -4096;  // conversion cuts off, which is down from here on
    const float scaled = std::clamp(2 * inverse * values[i], -1000.0f, 1000.0f);
    doubled[i] = static_cast<std::int16_t>(static_cast<int>(scaled - below_all) + below_all);
  }
  find_quants(doubled, quants);
  Byte bytes[block_size];
  std::copy(quants, quants + block_size, bytes);
  write_nibbles(bytes, out + 2);
}

template <void (*write)(const float*, Byte*)>
void write_blocks(DType type, const float* values, std::size_t count, std::byte* out) {
  Byte* block = reinterpret_cast<Byte*>(out);
  for (std::size_t i = 0; i < count; i += block_size, block += block_shape(type).bytes) write(values + i, block);
}

}  // namespace

void quantize(DType type, const float* values, std::size_t count, std::byte* out) {
  switch (type) {
    case DType::q8_0:
      return write_blocks<write_q8_0>(type, values, count, out);
    case DType::q4_0:
      return write_blocks<write_q4_0>(type, values, count, out);
    case DType::iq4_nl:
      return write_blocks<write_iq4_nl>(type, values, count, out);
    default:
      throw Error(fmt::format("{} cannot be written", name_of(type)));
  }
}

}  // namespace minimind
