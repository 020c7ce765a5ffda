#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/thread_team.h"
#include "runtime/kernels/kernels.h"

namespace minimind {

// What some tokens show of a weight matrix: their inputs, and the gradients of the loss at its outputs.
struct Observation {
  std::string matrix;                                // its name in the checkpoint
  std::shared_ptr<const std::vector<float>> inputs;  // [tokens, cols]
  std::vector<float> weights;                        // [tokens]: how much an error of the output matters
  std::vector<float> row_weights;                    // [rows]: the same by row, summed over the tokens
};

// The loss of changing a weight matrix [rows, cols] by D, to second order, is about
//
//   1/2 sum over rows r of row_weights[r] / sum(row_weights) * D[r] inputs D[r]ᵀ,
//
// the Fisher information of the matrix in which inputs and the gradients of the rows are taken to be independent,
// except that a token counts by the squared norm of its gradient.
struct SecondMoments {
  std::size_t cols = 0, tokens = 0;
  std::vector<float> inputs;        // [cols, cols]: sum of weight x xᵀ; until finish() only on and below the diagonal
  std::vector<double> row_weights;  // [rows]

  // Of add(), shared by all workers.
  struct Scratch {
    std::vector<float> panels, columns;
  };

  // Allocates what add() needs for this observation.
  void prepare(const Observation& observation, Scratch& scratch);

  // The worker's share: adds the observation. The result does not depend on the number of workers.
  void add(const kernels::Table& kernels, const Observation& observation, Scratch& scratch, Worker& worker);

  // Copies what is below the diagonal to above it.
  void finish();
};

}  // namespace minimind
