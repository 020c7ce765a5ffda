#include "weights/tensor/choose_codes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "weights/tensor/choose_k_codes.h"
#include "weights/tensor/extremes.h"
#include "weights/tensor/half.h"

namespace minimind {
namespace {

constexpr std::size_t block_size = quantized_values;

// Fills in what a type without integer scales has.
void set_scale(F16 scale, BlockCodes& out) {
  out.scale = scale;
  out.minimum = {};
  out.part_scales[0] = 1;
  out.part_minima[0] = 0;
}

// q4_0 and q5_0: the value of largest magnitude becomes exactly -centre, so its sign is that of the scale.
template <int centre>
void choose_centred(const float* values, BlockCodes& out) {
  const float scale = extreme_of(values) / static_cast<float>(-centre);
  const float inverse = inverse_of(scale);
  set_scale(to_f16(scale), out);
#pragma omp simd
  for (std::size_t i = 0; i < block_size; ++i) {
    constexpr float to_round = centre + 0.5f, highest = 2 * centre - 1;
    const int quant = static_cast<int>(std::clamp(values[i] * inverse + to_round, 0.0f, highest));
    out.codes[i] = static_cast<std::int8_t>(quant - centre);
  }
}

// q4_1 and q5_1: the lowest value becomes code 0 and the highest one the highest code.
template <int highest_code>
void choose_above_minimum(const float* values, BlockCodes& out) {
  const Bounds bounds = bounds_of(values);
  const float lowest = *std::find(values, values + block_size, bounds.lowest);  // the first zero, with its sign
  const float scale = (bounds.highest - lowest) / highest_code;
  const float inverse = inverse_of(scale);
  set_scale(to_f16(scale), out);
  out.minimum = to_f16(-lowest);
  out.part_minima[0] = 1;
#pragma omp simd
  for (std::size_t i = 0; i < block_size; ++i) {
    const int code = static_cast<int>(std::min((values[i] - lowest) * inverse + 0.5f, float{highest_code}));
    out.codes[i] = static_cast<std::int8_t>(code);
  }
}

// A register of integers of any x86-64 or 64-bit ARM machine. GCC compiles such vectors to faster code than loops with
// 15 comparisons.
constexpr std::size_t lanes = 8;
using Vector = std::int16_t __attribute__((vector_size(lanes * sizeof(std::int16_t))));

// `doubled` are twice the values, rounded down. Returns the nearest codes, minus the first code: the sum of the steps
// between codes k and k + 1 for all k whose midpoint the value is not below. All midpoints are multiples of 1/2.
template <std::size_t... k>
Vector steps_to_codes(Vector doubled, std::index_sequence<k...>) {
  return (((doubled >= std::int16_t{iq4_nl_codes[k] + iq4_nl_codes[k + 1]}) &
           std::int16_t{iq4_nl_codes[k + 1] - iq4_nl_codes[k]}) +
          ...);
}

void find_codes(const std::int16_t (&doubled)[block_size], std::int16_t (&codes)[block_size]) {
  constexpr auto middles = std::make_index_sequence<std::size(iq4_nl_codes) - 1>();
  for (std::size_t i = 0; i < block_size; i += lanes) {
    Vector vector;
    std::memcpy(&vector, doubled + i, sizeof vector);
    vector = steps_to_codes(vector, middles);
    std::memcpy(codes + i, &vector, sizeof vector);
  }
}

// Trial codes of the value of largest magnitude, around the last codes of either sign: clipping it, or leaving the last
// code unused, can lower the error.
constexpr int tried_extremes[] = {-136, -127, -118, -109, 96, 104, 112, 120};

// Returns the scale of the smallest squared error. Codes are chosen for each trial scale, then the scale for these
// codes. Integer sums do not depend on their order.
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

void choose_iq4_nl(const float* values, BlockCodes& out) {
  const F16 scale = to_f16(best_iq4_nl_scale(values));
  const float inverse = inverse_of(to_f32(scale));
  set_scale(scale, out);
  std::int16_t doubled[block_size], codes[block_size];
#pragma omp simd
  for (std::size_t i = 0; i < block_size; ++i) {
    constexpr int below_all = -4096;  // conversion truncates, which rounds down from here on
    const float scaled = std::clamp(2 * inverse * values[i], -1000.0f, 1000.0f);
    doubled[i] = static_cast<std::int16_t>(static_cast<int>(scaled - below_all) + below_all);
  }
  find_codes(doubled, codes);
#pragma omp simd
  for (std::size_t i = 0; i < block_size; ++i) out.codes[i] = static_cast<std::int8_t>(codes[i] + iq4_nl_codes[0]);
}

constexpr CodeChooser choosers[] = {
    {DType::q4_0, choose_centred<8>, 8},
    {DType::q5_0, choose_centred<16>, 16},
    // The minimum is one of the values.
    {DType::q4_1, choose_above_minimum<15>, 1},
    {DType::q5_1, choose_above_minimum<31>, 1},
    // The least squares of iq4_nl cannot require a scale above largest / 77.
    {DType::iq4_nl, choose_iq4_nl, 64},
    // A minimum is 63 steps of the binary16. The fit's error is not above that of codes from the lowest value to the
    // highest one, which keeps its minimum below four times the largest magnitude.
    {DType::q4_k, choose_q4_k, 16, DType::q5_0},
    {DType::q5_k, choose_q5_k, 16, DType::q5_1},
    // Values are rounded to codes that are at least two thirds of them, by a scale that makes the largest one at least
    // 31; the scale of its part becomes 128.
    {DType::q6_k, choose_q6_k, 2048, DType::q8_0},
};

}  // namespace

const CodeChooser* find_code_chooser(DType type) {
  const auto* const found = std::ranges::find(choosers, type, &CodeChooser::type);
  return found == std::end(choosers) ? nullptr : found;
}

}  // namespace minimind
