#include "runtime/calibrate/part_search.h"

#include <algorithm>

namespace minimind {
namespace {

// The integers that a code can be, for rounding without branches.
struct Grid {
  explicit Grid(const CodeRanges& ranges)
      : lowest(static_cast<float>(ranges.codes.lowest)), highest(static_cast<float>(ranges.codes.highest)) {
    for (std::size_t i = 0; i + 1 < ranges.book.size(); ++i) {
      const auto low = static_cast<float>(ranges.book[i]), high = static_cast<float>(ranges.book[i + 1]);
      middles[i] = (low + high) / 2;
      steps[i] = high - low;
      ++steps_in_book;
    }
  }

  float lowest, highest;
  std::size_t steps_in_book = 0;  // 0: every integer is a code
  std::array<float, 15> middles{}, steps{};
};

// Adding this rounds a number of magnitude below 2^22 to an integer, halves to even.
constexpr float rounder = 0x1.8p23f;

Lanes nearest(const Grid& grid, const Lanes& x) {
  Lanes code;
  if (grid.steps_in_book == 0) {
#pragma omp simd
    for (std::size_t i = 0; i < lanes; ++i) {
      const float low = x[i] < grid.lowest ? grid.lowest : x[i];
      const float clamped = low > grid.highest ? grid.highest : low;
      code[i] = (clamped + rounder) - rounder;
    }
    return code;
  }
  code.fill(grid.lowest);
  for (std::size_t step = 0; step < grid.steps_in_book; ++step) {
    const float middle = grid.middles[step], height = grid.steps[step];
#pragma omp simd
    for (std::size_t i = 0; i < lanes; ++i) code[i] += x[i] > middle ? height : 0.0f;
  }
  return code;
}

Lanes inverse(const Lanes& scale) {
  Lanes result;
  for (std::size_t i = 0; i < lanes; ++i) result[i] = scale[i] == 0 ? 0 : 1 / scale[i];
  return result;
}

// The column's base and the errors before it: what its value should be.
Lanes target_of(const PartProblem& problem, const std::array<Lanes, most_part_values>& errors, std::size_t column) {
  Lanes target = problem.base[column];
  for (std::size_t before = 0; before < column; ++before) {
    const float factor = problem.feedback[before][column];
#pragma omp simd
    for (std::size_t i = 0; i < lanes; ++i) target[i] += factor * errors[before][i];
  }
  return target;
}

template <class CodeOf>
void run_columns(const PartProblem& problem, PartChoice& choice, const CodeOf& code_of) {
  std::array<Lanes, most_part_values> errors;
  choice.cost.fill(0);
  for (std::size_t k = 0; k < problem.length; ++k) {
    const Lanes target = target_of(problem, errors, k);
    const Lanes code = code_of(k, target);
    const float pivot = problem.pivots[k];
#pragma omp simd
    for (std::size_t i = 0; i < lanes; ++i) {
      const float value = choice.scales.scale[i] * code[i] - choice.scales.minimum[i];
      const float missed = target[i] - value;
      errors[k][i] = problem.weight[k][i] - value;
      choice.cost[i] += pivot * missed * missed;
    }
    choice.codes[k] = code;
  }
}

// Sums over the columns, weighted by pivots, for the best scales of given codes.
struct Sums {
  Lanes code{}, code_squared{}, product{}, base{};
  float weight = 0;
};

Sums sums_of(const Grid& grid, const PartProblem& problem, const PartScales& scales) {
  Sums sums;
  const Lanes inverted = inverse(scales.scale);
  for (std::size_t k = 0; k < problem.length; ++k) {
    Lanes scaled;
    const Lanes& x = problem.base[k];
    for (std::size_t i = 0; i < lanes; ++i) scaled[i] = (x[i] + scales.minimum[i]) * inverted[i];
    const Lanes code = nearest(grid, scaled);
    const float pivot = problem.pivots[k];
    sums.weight += pivot;
#pragma omp simd
    for (std::size_t i = 0; i < lanes; ++i) {
      sums.code[i] += pivot * code[i];
      sums.code_squared[i] += pivot * code[i] * code[i];
      sums.product[i] += pivot * code[i] * x[i];
      sums.base[i] += pivot * x[i];
    }
  }
  return sums;
}

PartScales refitted(const Grid& grid, const PartProblem& problem, const PartScales& tried, bool has_minimum,
                    bool positive_minimum) {
  PartScales scales = tried;
  const Sums sums = sums_of(grid, problem, scales);
  for (std::size_t i = 0; i < lanes; ++i) {
    const float determinant = sums.weight * sums.code_squared[i] - sums.code[i] * sums.code[i];
    if (has_minimum && determinant > 0) {
      const float scale = (sums.weight * sums.product[i] - sums.code[i] * sums.base[i]) / determinant;
      const float minimum = (scale * sums.code[i] - sums.base[i]) / sums.weight;
      if (!positive_minimum || minimum >= 0) {
        scales.scale[i] = scale;
        scales.minimum[i] = minimum;
        continue;
      }
    }
    if (has_minimum && !positive_minimum) continue;
    scales.minimum[i] = 0;
    if (sums.code_squared[i] > 0) scales.scale[i] = sums.product[i] / sums.code_squared[i];
  }
  return scales;
}

struct Extremes {
  Lanes lowest, highest;
};

Extremes extremes_of(const PartProblem& problem) {
  Extremes result{problem.base[0], problem.base[0]};
  for (std::size_t k = 1; k < problem.length; ++k) {
    for (std::size_t i = 0; i < lanes; ++i) {
      result.lowest[i] = std::min(result.lowest[i], problem.base[k][i]);
      result.highest[i] = std::max(result.highest[i], problem.base[k][i]);
    }
  }
  return result;
}

}  // namespace

void choose_part_codes(const CodeRanges& ranges, const PartProblem& problem, PartChoice& choice) {
  const Grid grid(ranges);
  const Lanes inverted = inverse(choice.scales.scale);
  run_columns(problem, choice, [&](std::size_t, const Lanes& target) {
    Lanes scaled;
#pragma omp simd
    for (std::size_t i = 0; i < lanes; ++i) scaled[i] = (target[i] + choice.scales.minimum[i]) * inverted[i];
    return nearest(grid, scaled);
  });
}

void compute_cost(const PartProblem& problem, PartChoice& choice) {
  const std::array<Lanes, most_part_values> codes = choice.codes;
  run_columns(problem, choice, [&](std::size_t k, const Lanes&) { return codes[k]; });
}

void keep_cheaper(PartChoice& best, const PartChoice& other, std::size_t length) {
  for (std::size_t i = 0; i < lanes; ++i) {
    if (!(other.cost[i] < best.cost[i])) continue;
    best.cost[i] = other.cost[i];
    best.scales.scale[i] = other.scales.scale[i];
    best.scales.minimum[i] = other.scales.minimum[i];
    for (std::size_t k = 0; k < length; ++k) best.codes[k][i] = other.codes[k][i];
  }
}

std::vector<PartScales> likely_scales(const CodeRanges& ranges, bool has_minimum, bool positive_minimum,
                                      const PartProblem& problem) {
  const Grid grid(ranges);
  const Extremes extremes = extremes_of(problem);
  const auto levels = static_cast<float>(ranges.book.empty() ? ranges.codes.highest - ranges.codes.lowest + 1
                                                             : static_cast<int>(ranges.book.size()));
  const float step = 1.1f / levels;
  std::vector<PartScales> all;
  if (has_minimum) {
    const float range = grid.highest - grid.lowest;
    for (const auto& [cut_low, cut_high] : {std::pair{0.0f, 0.0f},
                                            {1.0f, 1.0f},
                                            {2.0f, 0.0f},
                                            {0.0f, 2.0f},
                                            {2.0f, 2.0f},
                                            {4.0f, 1.0f},
                                            {1.0f, 4.0f},
                                            {3.0f, 3.0f}}) {
      PartScales scales;
      for (std::size_t i = 0; i < lanes; ++i) {
        float low = extremes.lowest[i], high = extremes.highest[i];
        if (positive_minimum) low = std::min(low, 0.0f), high = std::max(high, 0.0f);
        const float width = high - low;
        low += cut_low * step * width / 2;
        high -= cut_high * step * width / 2;
        scales.scale[i] = (high - low) / range;
        scales.minimum[i] = scales.scale[i] * grid.lowest - low;
      }
      all.push_back(refitted(grid, problem, scales, true, positive_minimum));
    }
    return all;
  }
  for (const float end : {grid.lowest, grid.highest}) {
    for (const float beyond : {-2.0f, -1.0f, 0.0f, 1.0f, 2.0f}) {
      PartScales scales{.scale = {}, .minimum = {}};
      for (std::size_t i = 0; i < lanes; ++i) {
        const float low = extremes.lowest[i], high = extremes.highest[i];
        scales.scale[i] = (-low > high ? low : high) / (end * (1 + beyond * step));
      }
      all.push_back(refitted(grid, problem, scales, false, false));
    }
  }
  return all;
}

}  // namespace minimind
