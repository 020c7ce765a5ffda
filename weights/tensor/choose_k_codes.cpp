#include "weights/tensor/choose_k_codes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "weights/tensor/half.h"

namespace minimind {
namespace {

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

}  // namespace

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

}  // namespace minimind
