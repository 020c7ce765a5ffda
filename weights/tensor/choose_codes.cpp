#include "weights/tensor/choose_codes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>

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

// Four parts of a block at once, one in each lane: the sums of a part must be taken in the order of its values, which
// leaves only several parts to compute side by side. Vectors of 16 bytes exist on any x86-64 and 64-bit ARM machine.
constexpr std::size_t side_by_side = 4;
using Floats = float __attribute__((vector_size(side_by_side * sizeof(float))));
using Ints = std::int32_t __attribute__((vector_size(side_by_side * sizeof(std::int32_t))));

template <std::size_t length>
struct Parts {
  Floats values[length];
};

template <std::size_t length>
Parts<length> parts_at(const float* values) {
  Parts<length> parts;
  for (std::size_t i = 0; i < length; ++i) {
    for (std::size_t lane = 0; lane < side_by_side; ++lane) parts.values[i][lane] = values[lane * length + i];
  }
  return parts;
}

Floats all(float value) {
  return Floats{} + value;
}

Floats to_floats(Ints integers) {
  return __builtin_convertvector(integers, Floats);
}

// Floats of this magnitude have no bits for a fraction, so that the sum is rounded to an integer, ties to even; 23 bits
// of it are taken. Over 22 bits the result is that of those bits; for an infinity it is the lowest integer, for NaN 0.
constexpr float integers_only = 0x1.8p23f;
constexpr std::int32_t integer_bits = 0x7FFFFF, integer_offset = 0x400000;

int nearest(float value) {
  return (std::bit_cast<std::int32_t>(value + integers_only) & integer_bits) - integer_offset;
}

// Returns the nearest integers in the range.
Ints nearest(Floats values, IntegerRange range) {
  const Ints lowest = Ints{} + range.lowest, highest = Ints{} + range.highest;
  Ints integers = (std::bit_cast<Ints>(values + integers_only) & integer_bits) - integer_offset;
  integers = integers < lowest ? lowest : integers;
  return integers > highest ? highest : integers;
}

Floats magnitudes(Floats values) {
  return values < 0 ? -values : values;
}

bool any(Ints mask) {
  return (mask[0] | mask[1] | mask[2] | mask[3]) != 0;
}

// The types with minima: a value is about scale * code + start, where start is not above 0.
constexpr std::size_t long_part = 32;
using LongParts = Parts<long_part>;

struct Fit {
  Floats scale, start;
  Ints codes[long_part];
};

// The sums of a weighted least-squares fit that do not depend on the codes.
struct Weights {
  Floats weights[long_part];
  Floats sum = {}, value_sum = {};
};

// Large values weigh more, the smallest ones as much as the root of the mean square.
Weights weights_of(const LongParts& parts) {
  Floats squares = {};
  for (const Floats values : parts.values) squares += values * values;
  Floats mean;
  for (std::size_t lane = 0; lane < side_by_side; ++lane) mean[lane] = std::sqrt(squares[lane] / long_part);
  Weights weights;
  for (std::size_t i = 0; i < long_part; ++i) {
    weights.weights[i] = mean + magnitudes(parts.values[i]);
    weights.sum += weights.weights[i];
    weights.value_sum += weights.weights[i] * parts.values[i];
  }
  return weights;
}

Floats weighted_error(const LongParts& parts, const Weights& weights, const Fit& fit) {
  Floats error = {};
  for (std::size_t i = 0; i < long_part; ++i) {
    const Floats difference = fit.scale * to_floats(fit.codes[i]) + fit.start - parts.values[i];
    error += weights.weights[i] * (difference * difference);
  }
  return error;
}

void set_codes(const LongParts& parts, Floats inverse, Floats start, int highest, Fit& fit) {
  for (std::size_t i = 0; i < long_part; ++i) {
    fit.codes[i] = nearest(inverse * (parts.values[i] - start), {0, highest});
  }
}

// Sets the scale and the start of the smallest weighted error for the codes. Returns a mask of the lanes in which the
// codes differ, as they must.
Ints solve(const LongParts& parts, const Weights& weights, Fit& fit) {
  Floats codes = {}, squares = {}, products = {};
  for (std::size_t i = 0; i < long_part; ++i) {
    const Floats code = to_floats(fit.codes[i]), weighted = weights.weights[i] * code;
    codes += weighted;
    squares += weighted * code;
    products += weighted * parts.values[i];
  }
  const Floats determinant = weights.sum * squares - codes * codes;
  fit.scale = (weights.sum * products - weights.value_sum * codes) / determinant;
  fit.start = (squares * weights.value_sum - codes * products) / determinant;
  const Ints above_zero = fit.start > 0;
  fit.scale = above_zero ? products / squares : fit.scale;
  fit.start = above_zero ? all(0) : fit.start;
  return determinant > 0;
}

// How a type looks for codes: as if they went from the best start so far to highest + first + step * trial.
struct Search {
  int highest, trials;
  float first, step;
};

// Equal values make the inverse infinite, which gives the scale 0 and, for NaN, the codes 0.
Fit best_fit(const LongParts& parts, const Search& search) {
  const Weights weights = weights_of(parts);
  Floats lowest = parts.values[0], highest = parts.values[0];
  for (const Floats values : parts.values) {
    lowest = values < lowest ? values : lowest;
    highest = values > highest ? values : highest;
  }
  const Floats start = lowest > 0 ? all(0) : lowest;
  const Floats inverse = static_cast<float>(search.highest) / (highest - start);
  Fit best{1 / inverse, start, {}};
  set_codes(parts, inverse, start, search.highest, best);
  Floats best_error = weighted_error(parts, weights, best);
  for (int trial = 0; trial < search.trials; ++trial) {
    const float codes = search.first + search.step * static_cast<float>(trial) + static_cast<float>(search.highest);
    Fit fit;
    set_codes(parts, codes / (highest - best.start), best.start, search.highest, fit);
    const Ints solved = solve(parts, weights, fit);
    const Floats error = weighted_error(parts, weights, fit);
    const Ints better = solved & (error < best_error);
    if (!any(better)) continue;
    best_error = better ? error : best_error;
    best.scale = better ? fit.scale : best.scale;
    best.start = better ? fit.start : best.start;
    for (std::size_t i = 0; i < long_part; ++i) best.codes[i] = better ? fit.codes[i] : best.codes[i];
  }
  return best;
}

constexpr std::size_t long_parts = BlockCodes::most_values / long_part;
constexpr int most_of_part = 63;  // the highest integer scale and minimum of a part

// Returns what the largest of a part's scales or minima, which count from 0, becomes the integer 63 with.
float largest_of(const float (&numbers)[long_parts]) {
  float largest = 0;
  for (const float number : numbers) largest = number > largest ? number : largest;
  return largest;
}

// A negative scale, which the search hardly finds, wraps and becomes the largest.
std::uint8_t part_integer(float number, float largest) {
  const float inverse = largest > 0 ? most_of_part / largest : 0.0f;
  return std::min<std::uint8_t>(static_cast<std::uint8_t>(nearest(inverse * number)), most_of_part);
}

// Rounds the values to codes of the scale and the minimum that the block has. A part whose scale has become 0 keeps the
// codes of the search.
void round_part(const float* values, float scale, float minimum, int highest, std::int8_t* codes) {
  if (scale == 0) return;
  for (std::size_t i = 0; i < long_part; ++i) {
    codes[i] = static_cast<std::int8_t>(std::clamp(nearest((values[i] + minimum) / scale), 0, highest));
  }
}

void choose_with_minima(const float* values, const Search& search, BlockCodes& out) {
  float scales[long_parts], minima[long_parts];
  for (std::size_t first = 0; first < long_parts; first += side_by_side) {
    const Fit fit = best_fit(parts_at<long_part>(values + first * long_part), search);
    for (std::size_t lane = 0; lane < side_by_side; ++lane) {
      scales[first + lane] = fit.scale[lane];
      minima[first + lane] = -fit.start[lane];
      std::int8_t* codes = out.codes + (first + lane) * long_part;
      for (std::size_t i = 0; i < long_part; ++i) codes[i] = static_cast<std::int8_t>(fit.codes[i][lane]);
    }
  }
  const float largest_scale = largest_of(scales), largest_minimum = largest_of(minima);
  out.scale = to_f16(largest_scale / most_of_part);
  out.minimum = to_f16(largest_minimum / most_of_part);
  for (std::size_t p = 0; p < long_parts; ++p) {
    out.part_scales[p] = static_cast<std::int8_t>(part_integer(scales[p], largest_scale));
    out.part_minima[p] = part_integer(minima[p], largest_minimum);
    round_part(values + p * long_part, to_f32(out.scale) * static_cast<float>(out.part_scales[p]),
               to_f32(out.minimum) * static_cast<float>(out.part_minima[p]), search.highest, out.codes + p * long_part);
  }
}

// q6_k: a value is about scale * code.
constexpr std::size_t short_part = 16, short_parts = BlockCodes::most_values / short_part;
using ShortParts = Parts<short_part>;
constexpr IntegerRange q6_k_codes_range{-32, 31};
constexpr float smallest = 1e-15f;  // what is below counts as 0

struct ScaleFit {
  Floats scale;
  Ints codes[short_part];
};

// The sums of a least-squares fit for the codes; values weigh as much as their squares.
struct ScaleSums {
  Floats products = {}, squares = {};
};

ScaleSums round_and_sum(const ShortParts& parts, Floats inverse, ScaleFit& fit) {
  ScaleSums sums;
  for (std::size_t i = 0; i < short_part; ++i) {
    const Floats values = parts.values[i], weights = values * values;
    fit.codes[i] = nearest(inverse * values, q6_k_codes_range);
    const Floats codes = to_floats(fit.codes[i]);
    sums.products += weights * values * codes;
    sums.squares += weights * codes * codes;
  }
  return sums;
}

// Tries 19 scales by which the value of largest magnitude is about -32, starting with the one by which it is.
ScaleFit best_scale_fit(const ShortParts& parts) {
  Floats largest = {}, extreme = {};
  for (const Floats values : parts.values) {
    const Ints larger = magnitudes(values) > largest;
    largest = larger ? magnitudes(values) : largest;
    extreme = larger ? values : extreme;
  }
  ScaleFit best;
  const ScaleSums sums = round_and_sum(parts, -32.0f / extreme, best);
  best.scale = sums.squares != 0 ? sums.products / sums.squares : all(0);
  Floats best_gain = best.scale * sums.products;
  for (int trial = -9; trial <= 9; ++trial) {
    if (trial == 0) continue;
    ScaleFit fit;
    const ScaleSums tried = round_and_sum(parts, -(32.0f + 0.1f * static_cast<float>(trial)) / extreme, fit);
    const Ints better = (tried.squares > 0) & (tried.products * tried.products > best_gain * tried.squares);
    if (!any(better)) continue;
    best.scale = better ? tried.products / tried.squares : best.scale;
    best_gain = better ? best.scale * tried.products : best_gain;
    for (std::size_t i = 0; i < short_part; ++i) best.codes[i] = better ? fit.codes[i] : best.codes[i];
  }
  const Ints zero = largest < smallest;
  best.scale = zero ? all(0) : best.scale;
  for (Ints& codes : best.codes) codes = zero ? Ints{} + q6_k_codes_range.lowest : codes;
  return best;
}

void round_short_part(const float* values, float scale, std::int8_t* codes) {
  if (scale == 0) return;
  for (std::size_t i = 0; i < short_part; ++i) {
    const int code = nearest(values[i] / scale);
    codes[i] = static_cast<std::int8_t>(std::clamp(code, q6_k_codes_range.lowest, q6_k_codes_range.highest));
  }
}

// Choose the codes of the k-quants as llama.cpp does without an importance matrix, byte for byte, for 256 values. Every
// operation is one of binary32 in a fixed order: the results are those of any machine that does not fuse a product with
// a sum.
void choose_q4_k(const float* values, BlockCodes& out) {
  choose_with_minima(values, {15, 21, -1.0f, 0.1f}, out);
}

void choose_q5_k(const float* values, BlockCodes& out) {
  choose_with_minima(values, {31, 16, -0.5f, 0.1f}, out);
}

void choose_q6_k(const float* values, BlockCodes& out) {
  float scales[short_parts], largest = 0, extreme = 0;
  for (std::size_t first = 0; first < short_parts; first += side_by_side) {
    const ScaleFit fit = best_scale_fit(parts_at<short_part>(values + first * short_part));
    for (std::size_t lane = 0; lane < side_by_side; ++lane) {
      scales[first + lane] = fit.scale[lane];
      std::int8_t* codes = out.codes + (first + lane) * short_part;
      for (std::size_t i = 0; i < short_part; ++i) codes[i] = static_cast<std::int8_t>(fit.codes[i][lane]);
    }
  }
  for (const float scale : scales) {
    if (std::fabs(scale) > largest) {
      largest = std::fabs(scale);
      extreme = scale;
    }
  }
  out.minimum = {};
  std::fill(std::begin(out.part_minima), std::end(out.part_minima), std::uint8_t{0});
  if (largest < smallest) {
    out.scale = {};
    std::fill(std::begin(out.part_scales), std::end(out.part_scales), std::int8_t{0});
    std::fill(std::begin(out.codes), std::end(out.codes), static_cast<std::int8_t>(q6_k_codes_range.lowest));
    return;
  }
  const float inverse = -128.0f / extreme;
  out.scale = to_f16(1 / inverse);
  for (std::size_t p = 0; p < short_parts; ++p) {
    out.part_scales[p] = static_cast<std::int8_t>(std::min(127, nearest(inverse * scales[p])));
    round_short_part(values + p * short_part, to_f32(out.scale) * static_cast<float>(out.part_scales[p]),
                     out.codes + p * short_part);
  }
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
