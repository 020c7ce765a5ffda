#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "runtime/calibrate/error_metric.h"
#include "runtime/calibrate/measure.h"
#include "runtime/kernels/kernels.h"
#include "weights/checkpoint/checkpoint.h"
#include "weights/tensor/dtype.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// Returns true if matrices of `cols` columns can be quantised to this type with knowledge of their inputs.
bool can_calibrate(DType type, std::size_t cols);

// Quantises the matrices of a checkpoint with knowledge of their inputs on a text. The results do not depend on the
// number of threads.
class Calibration {
 public:
  // Measures the text; see measure(). The checkpoint must outlive this object.
  Calibration(const Checkpoint& checkpoint, const CalibrationText& text, std::size_t threads,
              const std::function<void(std::size_t, std::size_t)>& progress);

  // The nats per token with which the model predicts the text.
  double nats_per_token() const { return nats_per_token_; }

  // The fewest tokens that any matrix has seen, divided by its columns; below 1 its inputs do not span all columns.
  struct Coverage {
    std::string matrix;
    std::size_t tokens = 0, cols = 0;
  };
  Coverage least_coverage() const;

  // Estimates by how much this type of a matrix raises the mean KL divergence per token, from a sample of its rows.
  double loss(const std::string& matrix, DType type);

  // Returns the quantised matrix. Throws Error if its values are not finite, or too large for the type.
  StoredTensor quantize(const std::string& matrix, DType type);

  // Releases what is known of a matrix, which will not be used again.
  void forget(const std::string& matrix);

 private:
  const ErrorMetric& metric(const std::string& matrix);
  void share_among_experts();

  const Checkpoint& checkpoint_;
  const kernels::Table& kernels_;
  std::size_t threads_;
  std::map<std::string, SecondMoments> moments_;
  std::map<std::string, Coverage> coverage_;
  std::map<std::string, std::unique_ptr<ErrorMetric>> metrics_;
  double nats_per_token_;
  std::size_t predicted_;
};

}  // namespace minimind
