#include "runtime/calibrate/calibration.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "runtime/calibrate/part_search.h"
#include "runtime/calibrate/quantize_rows.h"
#include "runtime/kernels/instruction_sets.h"
#include "weights/base/error.h"
#include "weights/tensor/block_codes.h"
#include "weights/tensor/shape.h"
#include "weights/tensor/stored_numbers.h"

namespace minimind {
namespace {

constexpr double least_damping = 0.01;
constexpr double damping_of_few_tokens = 1.0;  // times columns / tokens
constexpr int descent_rounds = 4;              // of coordinate descent
constexpr std::size_t sampled_rows = 64;

// An expert that fewer tokens reach than this many times its columns also takes after the inputs of the others.
constexpr std::size_t least_tokens_per_column = 2;

// "model.layers.0.mlp.experts.3.up_proj.weight" -> "model.layers.0.mlp.experts." and "up_proj.weight"
std::pair<std::string, std::string> expert_kind(const std::string& matrix) {
  constexpr std::string_view experts = ".experts.";
  const std::size_t at = matrix.find(experts);
  if (at == std::string::npos) return {};
  const std::size_t after = at + experts.size();
  return {matrix.substr(0, after), matrix.substr(matrix.find('.', after) + 1)};
}

std::vector<float> finite_values(const StoredTensor& tensor, const std::string& name) {
  std::vector<float> values = to_floats(tensor);
  if (std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); })) return values;
  throw Error(fmt::format("{}: {} has values that are not finite, expected numbers; it cannot be quantised",
                          tensor.file, name));
}

}  // namespace

bool can_calibrate(DType type, std::size_t cols) {
  return has_block_codes(type) && code_ranges(type).part <= most_part_values && cols % block_shape(type).elements == 0;
}

Calibration::Calibration(const Checkpoint& checkpoint, const CalibrationText& text, std::size_t threads,
                         const std::function<void(std::size_t, std::size_t)>& progress)
    : checkpoint_(checkpoint), kernels_(kernels::choose()), threads_(threads) {
  Measurement measurement = measure(checkpoint, text, kernels_, threads, progress);
  moments_ = std::move(measurement.matrices);
  predicted_ = measurement.predicted;
  nats_per_token_ = measurement.nats / static_cast<double>(std::max<std::size_t>(predicted_, 1));
  for (const auto& [name, moments] : moments_) coverage_[name] = {name, moments.tokens, moments.cols};
  share_among_experts();
}

// The inputs of gate and up are the same hidden states for all experts of a layer: those of all experts stand in for
// what a seldom chosen one has not seen. The inputs of down are its own hidden units, and are only damped.
void Calibration::share_among_experts() {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> kinds;
  for (const auto& [name, tensor] : checkpoint_.tensors) {
    const auto kind = expert_kind(name);
    if (!kind.first.empty() && tensor.shape.size() == 2) kinds[kind].push_back(name);
  }
  for (const auto& [kind, names] : kinds) {
    const std::size_t cols = checkpoint_.tensors.at(names.front()).shape[1];
    std::vector<float> all(cols * cols);
    std::size_t all_tokens = 0;
    for (const std::string& name : names) {
      SecondMoments& moments = moments_[name];
      if (moments.cols == 0) {  // no token has reached it
        moments.cols = cols;
        moments.inputs.resize(cols * cols);
        moments.row_weights.resize(checkpoint_.tensors.at(name).shape[0]);
        coverage_[name] = {name, 0, cols};
      }
      all_tokens += moments.tokens;
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += moments.inputs[i] / static_cast<float>(names.size());
    }
    if (kind.second.starts_with("down")) continue;
    for (const std::string& name : names) {
      SecondMoments& moments = moments_[name];
      const std::size_t floor = least_tokens_per_column * cols;
      if (moments.tokens >= floor) continue;
      const float share = 1 - static_cast<float>(moments.tokens) / static_cast<float>(floor);
      for (std::size_t i = 0; i < all.size(); ++i) moments.inputs[i] += share * all[i];
      moments.tokens += static_cast<std::size_t>(share * static_cast<float>(all_tokens / names.size()));
    }
  }
}

Calibration::Coverage Calibration::least_coverage() const {
  return std::min_element(coverage_.begin(), coverage_.end(),
                          [](const auto& a, const auto& b) {
                            return a.second.tokens * b.second.cols < b.second.tokens * a.second.cols;
                          })
      ->second;
}

const ErrorMetric& Calibration::metric(const std::string& matrix) {
  std::unique_ptr<ErrorMetric>& made = metrics_[matrix];
  if (!made) {
    SecondMoments& moments = moments_.at(matrix);
    const double tokens = static_cast<double>(std::max<std::size_t>(moments.tokens, 1));
    const double unseen = damping_of_few_tokens * static_cast<double>(moments.cols) / tokens;
    made = std::make_unique<ErrorMetric>(moments, least_damping + unseen, threads_);
    moments.inputs = {};
  }
  return *made;
}

double Calibration::loss(const std::string& matrix, DType type) {
  const StoredTensor& tensor = checkpoint_.tensors.at(matrix);
  const std::size_t rows = tensor.shape[0], cols = tensor.shape[1];
  const std::size_t count = std::min(rows, std::max(sampled_rows, rows / 16));
  const std::vector<double>& weights = moments_.at(matrix).row_weights;
  std::vector<float> sample(count * cols);
  const auto row_of = [&](std::size_t i) { return i * rows / count; };
  for (std::size_t i = 0; i < count; ++i) read_floats(tensor, row_of(i) * cols, cols, sample.data() + i * cols);
  const ErrorMetric& of_matrix = metric(matrix);
  const std::vector<float> errors =
      quantize_rows(type, {sample.data(), count, cols}, of_matrix, 0, kernels_, threads_).errors;
  double weight = 0, error = 0;
  for (std::size_t i = 0; i < count; ++i) {
    weight += weights[row_of(i)];
    error += weights[row_of(i)] * static_cast<double>(errors[i]);
  }
  return weight > 0 ? error / weight * of_matrix.unit() / 2 / static_cast<double>(predicted_) : 0;
}

StoredTensor Calibration::quantize(const std::string& matrix, DType type) {
  const StoredTensor& tensor = checkpoint_.tensors.at(matrix);
  const std::vector<float> values = finite_values(tensor, matrix);
  QuantizedRows quantized = quantize_rows(type, {values.data(), tensor.shape[0], tensor.shape[1]}, metric(matrix),
                                          descent_rounds, kernels_, threads_);
  if (!std::all_of(quantized.errors.begin(), quantized.errors.end(), [](float x) { return std::isfinite(x); })) {
    throw Error(fmt::format("{}: {} has values too large for {}, expected magnitudes whose scale is a binary16",
                            tensor.file, matrix, name_of(type)));
  }
  return {.dtype = type, .shape = tensor.shape, .data = StoredBytes(std::move(quantized.blocks)), .file = tensor.file};
}

void Calibration::forget(const std::string& matrix) {
  metrics_.erase(matrix);
}

}  // namespace minimind
