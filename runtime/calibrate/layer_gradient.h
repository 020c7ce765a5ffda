#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/calibrate/dense_matrix.h"
#include "runtime/calibrate/second_moments.h"
#include "runtime/engine/matrix.h"
#include "runtime/engine/rope.h"
#include "runtime/kernels/kernels.h"
#include "weights/checkpoint/checkpoint.h"

namespace minimind {

// A weight matrix for products with it and with its transpose.
struct TrainableMatrix {
  std::string name;  // in the checkpoint
  DenseMatrix forward, backward;
};

struct TrainableFeedForward {
  std::optional<TrainableMatrix> gate;
  TrainableMatrix up, down;
  std::vector<float> gate_bias, up_bias, down_bias;  // or empty
};

// A layer of a checkpoint in f32, and its gradient. The functions of several objects or calls may run at once.
class LayerGradient {
 public:
  LayerGradient(const Checkpoint& checkpoint, const kernels::Table& kernels, std::size_t layer);

  // Computes the layer's outputs for the rows x [T, d], which are texts of these lengths, one after the other.
  void forward(std::span<const std::size_t> lengths, Matrix<const float> x, Matrix<float> out) const;

  // Replaces the gradient of the loss at the outputs by that at the inputs x, and appends an observation of every
  // matrix that these texts reach. The gradient through the router's choice and weights is omitted.
  void backward(std::span<const std::size_t> lengths, Matrix<const float> x, Matrix<float> gradient,
                std::vector<Observation>& observations) const;

 private:
  using Values = std::vector<float>;
  struct ExpertState;
  struct State;

  TrainableMatrix matrix(const std::string& name) const;
  TrainableFeedForward feed_forward(const std::string& prefix) const;
  Values vector(const std::string& name) const;

  Values product(const DenseMatrix& matrix, const Values& x) const;
  Values normed(Matrix<const float> x, const Values& weight) const;
  void rotate_heads(std::span<const std::size_t> lengths, Values& heads, std::size_t count, bool back) const;
  State run(std::span<const std::size_t> lengths, Matrix<const float> x) const;
  void route(State& state) const;
  void run_expert(const TrainableFeedForward& expert, ExpertState& state) const;
  void expert_backward(const TrainableFeedForward& expert, const ExpertState& state, Matrix<const float> gradient,
                       Values& normed_gradient, std::vector<Observation>& observations) const;
  Values attention_backward(std::span<const std::size_t> lengths, const State& state, const Values& gradient,
                            std::vector<Observation>& observations) const;

  const Checkpoint& checkpoint_;
  const Config& config_;
  const kernels::Table& kernels_;
  Rope rope_;
  TrainableMatrix q_, k_, v_, o_;
  Values input_norm_, post_norm_, q_norm_, k_norm_;
  DenseMatrix router_;                         // without rows in a dense layer
  std::vector<TrainableFeedForward> experts_;  // the only FFN of a dense layer; the routed ones, then the shared ones
};

// Adds the gradient at x [T, n] of y = x / sqrt(mean(x²) + eps) * weight to `gradient`.
void add_norm_gradient(Matrix<const float> x, const std::vector<float>& weight, double eps, const float* y_gradient,
                       float* gradient);

// Returns what these inputs [T, cols], and these gradients at the outputs [T, rows], show of a matrix.
Observation observe(const std::string& matrix, std::shared_ptr<const std::vector<float>> inputs,
                    Matrix<const float> gradients);

}  // namespace minimind
