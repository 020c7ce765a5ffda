#pragma once

#include <cstddef>
#include <vector>

#include "runtime/calibrate/error_metric.h"
#include "runtime/engine/matrix.h"
#include "runtime/kernels/kernels.h"
#include "weights/tensor/dtype.h"

namespace minimind {

struct QuantizedRows {
  std::vector<std::byte> blocks;  // as in a GGUF file, row after row
  std::vector<float> errors;      // of each row: e H eᵀ
};

// Quantises rows of a weight matrix so that e H eᵀ is small. `type` must have_block_codes with rows of whole blocks.
//
// First, the columns are rounded in the order of the metric, each after the errors of those before it are added as far
// as it can make up for them (Frantar et al. 2022, arXiv:2210.17323). The scales of a part of a block are those, of
// about ten, that cost least after this rounding. Then `rounds` times, each part is chosen again, given all others:
// coordinate descent. The result is equal for any number of threads.
QuantizedRows quantize_rows(DType type, Matrix<const float> rows, const ErrorMetric& metric, int rounds,
                            const kernels::Table& kernels, std::size_t threads);

}  // namespace minimind
