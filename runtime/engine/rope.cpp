#include "runtime/engine/rope.h"

#include <algorithm>
#include <cmath>

namespace minimind {
namespace {

// Pairs that rotate often within the original context keep their frequency; slow ones are divided by the factor;
// between them is a ramp.
void apply_yarn(const Config& config, std::vector<float>& frequencies) {
  const auto [low, high] = yarn_ramp(config, config.rope_scaling->ramp_end);
  const float width = static_cast<float>(std::max(high - low, 0.001));
  const float factor = static_cast<float>(config.rope_scaling->factor);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const float ramp = std::clamp((static_cast<float>(i) - static_cast<float>(low)) / width, 0.0f, 1.0f);
    frequencies[i] *= 1.0f - ramp + ramp / factor;
  }
}

}  // namespace

Rope make_rope(const Config& config) {
  Rope rope;
  rope.frequencies.resize(config.head_dim / 2);
  for (std::size_t i = 0; i < rope.frequencies.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(config.head_dim);
    rope.frequencies[i] = 1.0f / static_cast<float>(std::pow(config.rope_theta, static_cast<double>(exponent)));
  }
  if (!config.rope_scaling) return rope;
  const RopeScaling& scaling = *config.rope_scaling;
  if (scaling.kind == RopeScaling::Kind::linear) {
    for (float& frequency : rope.frequencies) frequency /= static_cast<float>(scaling.factor);
  } else {
    apply_yarn(config, rope.frequencies);
    rope.attention_factor = static_cast<float>(scaling.attention_factor);
  }
  return rope;
}

void rope_angles(const Rope& rope, std::size_t position, float* cos, float* sin) {
  for (std::size_t i = 0; i < rope.frequencies.size(); ++i) {
    const double angle = static_cast<float>(position) * rope.frequencies[i];
    cos[i] = static_cast<float>(std::cos(angle)) * rope.attention_factor;
    sin[i] = static_cast<float>(std::sin(angle)) * rope.attention_factor;
  }
}

void rotate(const kernels::Table& kernels, const Config& config, const float* cos, const float* sin, float* head) {
  const bool halves = rope_layout(config.family) == RopeLayout::halves;
  (halves ? kernels.rope_halves : kernels.rope_adjacent_pairs)(head, cos, sin, config.head_dim);
}

}  // namespace minimind
