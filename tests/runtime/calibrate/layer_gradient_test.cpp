#include "runtime/calibrate/layer_gradient.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "runtime/kernels/instruction_sets.h"
#include "tests/support/golden.h"
#include "weights/checkpoint/open_checkpoint.h"
#include "weights/model/hidden_act.h"
#include "weights/model/tensor_names.h"

namespace minimind {
namespace {

using Values = std::vector<float>;

Values random_values(std::size_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  Values values(count);
  for (float& value : values) value = normal(random);
  return values;
}

double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

void expect_slope(const Checkpoint& checkpoint, const std::string& name) {
  const LayerGradient layer(checkpoint, kernels::choose(), 0);
  const std::size_t d = checkpoint.config.hidden_size;
  const std::vector<std::size_t> lengths{3, 5};
  const std::size_t rows = 8;
  std::mt19937 random(1);
  const Values x = random_values(rows * d, random), direction = random_values(rows * d, random);
  const Values loss = random_values(rows * d, random);
  const auto loss_at = [&](float step) {
    Values moved = x, out(rows * d);
    for (std::size_t i = 0; i < x.size(); ++i) moved[i] += step * direction[i];
    layer.forward(lengths, {moved.data(), rows, d}, {out.data(), rows, d});
    return dot(loss, out);
  };
  Values gradient = loss;
  std::vector<Observation> observations;
  layer.backward(lengths, {x.data(), rows, d}, {gradient.data(), rows, d}, observations);
  constexpr float step = 1e-3f;
  const double slope = (loss_at(step) - loss_at(-step)) / (2 * static_cast<double>(step));
  EXPECT_NEAR(dot(gradient, direction), slope, 0.01 * std::abs(slope) + 0.05) << name;
  EXPECT_GE(observations.size(), 6u) << name;
}

TEST(LayerGradient, IsTheSlopeOfTheLayer) {
  for (const std::string& name : golden_names()) {
    const GoldenCase golden = load_golden(name);
    if (golden.yarn || golden.lora_path) continue;
    const Checkpoint checkpoint = open_checkpoint(golden.model_path, {});
    if (is_mixture(checkpoint.tensors, 0)) continue;  // the router's gradient is left out
    expect_slope(checkpoint, name);
  }
}

TEST(LayerGradient, IsTheSlopeOfEachActivationWithAndWithoutAGate) {
  for (const std::string name : {"v3-dense", "v3-plain-relu"}) {
    Checkpoint checkpoint = open_checkpoint(load_golden(name).model_path, {});
    for (const auto& [act, act_name] : hidden_act_names) {
      checkpoint.config.hidden_act = act;
      expect_slope(checkpoint, name + " with " + std::string(act_name));
    }
  }
}

TEST(LayerGradient, ObservesEachExpertWithItsTokensOnly) {
  for (const std::string& name : golden_names()) {
    const GoldenCase golden = load_golden(name);
    if (golden.yarn || golden.lora_path) continue;
    const Checkpoint checkpoint = open_checkpoint(golden.model_path, {});
    if (!is_mixture(checkpoint.tensors, 0)) continue;
    const LayerGradient layer(checkpoint, kernels::choose(), 0);
    const std::size_t d = checkpoint.config.hidden_size, rows = 20;
    std::mt19937 random(2);
    const Values x = random_values(rows * d, random);
    Values gradient = random_values(rows * d, random);
    std::vector<Observation> observations;
    layer.backward(std::vector<std::size_t>{rows}, {x.data(), rows, d}, {gradient.data(), rows, d}, observations);
    std::size_t routed = 0;
    for (const Observation& observation : observations) {
      const bool up = observation.matrix.ends_with("up_proj.weight");
      if (up && observation.matrix.find(".experts.") != std::string::npos) routed += observation.weights.size();
    }
    EXPECT_EQ(routed, rows * checkpoint.config.num_experts_per_tok) << golden.name;
  }
}

}  // namespace
}  // namespace minimind
