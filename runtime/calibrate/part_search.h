#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "weights/tensor/block_codes.h"

namespace minimind {

// Rows that are quantised at once, one per lane of the processor's vectors.
inline constexpr std::size_t lanes = 16;
struct alignas(64) Lanes : std::array<float, lanes> {};

inline constexpr std::size_t most_part_values = 32;

// The part of a block that has one scale, for some rows. The errors e = weight - value of its columns cost
//
//   sum over columns k of pivots[k] * (base[k] - value[k] + sum over i < k of e[i] feedback[i][k])².
struct PartProblem {
  std::size_t length;  // columns
  std::array<Lanes, most_part_values> weight, base;
  std::array<std::array<float, most_part_values>, most_part_values> feedback;
  std::array<float, most_part_values> pivots;
};

// value[k] = scale * code[k] - minimum
struct PartScales {
  Lanes scale, minimum;
};

struct PartChoice {
  PartScales scales;
  std::array<Lanes, most_part_values> codes;
  Lanes cost;
};

// Rounds each column, in order, to the code that costs least, given those before it.
void choose_part_codes(const CodeRanges& ranges, const PartProblem& problem, PartChoice& choice);

// Computes choice.cost for its scales and codes.
void compute_cost(const PartProblem& problem, PartChoice& choice);

// In each lane: keeps the cheaper of the two.
void keep_cheaper(PartChoice& best, const PartChoice& other, std::size_t length);

// Returns scales worth trying, without regard to how a file stores them: the largest value is a little below, at or
// above the end of the codes' range, and the scale is then the best one for the codes of plain rounding. Minima are 0
// if the type has none, and at least 0 if `positive_minimum`.
std::vector<PartScales> likely_scales(const CodeRanges& ranges, bool has_minimum, bool positive_minimum,
                                      const PartProblem& problem);

}  // namespace minimind
