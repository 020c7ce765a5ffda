#include "runtime/calibrate/second_moments.h"

#include <algorithm>

#include "runtime/engine/packed_matrix.h"

namespace minimind {

using kernels::panel_rows;

void SecondMoments::prepare(const Observation& observation, Scratch& scratch) {
  const std::size_t count = observation.weights.size(), width = observation.inputs->size() / count;
  const std::size_t padded = kernels::panel_count(width) * panel_rows * count;
  if (scratch.panels.size() < padded) scratch.panels.resize(padded);
  if (scratch.columns.size() < padded) scratch.columns.resize(padded);
  if (cols > 0) return;
  cols = width;
  inputs.resize(cols * cols);
  row_weights.resize(observation.row_weights.size());
}

void SecondMoments::add(const kernels::Table& kernels, const Observation& observation, Scratch& scratch,
                        Worker& worker) {
  const std::size_t count = observation.weights.size();
  const float* const x = observation.inputs->data();
  if (worker.index() == 0) {
    tokens += count;
    for (std::size_t r = 0; r < row_weights.size(); ++r) row_weights[r] += observation.row_weights[r];
  }
  worker.barrier();
  const Range packed = worker.share(kernels::panel_count(cols));
  for (std::size_t panel = packed.begin; panel < packed.end; ++panel) {
    const std::size_t first = panel * panel_rows, width = std::min(panel_rows, cols - first);
    for (std::size_t t = 0; t < count; ++t) {
      float* const to = scratch.panels.data() + first * count + t * panel_rows;
      std::copy_n(x + t * cols + first, width, to);
      for (std::size_t i = 0; i < width; ++i) {
        scratch.columns[(first + i) * count + t] = observation.weights[t] * to[i];
      }
    }
  }
  worker.barrier();
  // inputs[j][i] for i <= j: strips of 16 rows j times the panels up to the diagonal, in turns.
  const Panels<float> all{scratch.panels.data(), panel_rows * count, cols, count};
  for (std::size_t strip = worker.index(); strip * panel_rows < cols; strip += worker.count()) {
    const std::size_t first = strip * panel_rows, height = std::min(panel_rows, cols - first);
    matmul(kernels, all, {0, strip + 1}, Matrix<const float>{scratch.columns.data() + first * count, height, count},
           Matrix<float>{inputs.data() + first * cols, height, cols}, true);
  }
  worker.barrier();
}

void SecondMoments::finish() {
  for (std::size_t row = 0; row < cols; ++row) {
    for (std::size_t col = row + 1; col < cols; ++col) inputs[row * cols + col] = inputs[col * cols + row];
  }
}

}  // namespace minimind
