#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/engine/model.h"
#include "runtime/inside/points.h"
#include "runtime/inside/recording.h"

namespace minimind {

// A neuron of an FFN at a token: a value of act(gate) * up, which adds its column of down_proj to the residual stream.
struct StrongNeuron {
  std::size_t index;
  std::optional<std::size_t> expert;  // whose neuron it is, in MixtureOfExperts::experts
  float activation;                   // act(gate) * up
  double norm;                        // of what it adds to the residual stream, with the weight of its expert
  // The tokens whose logits it adds most to, and how much, by falling value: as in TokenAccount, through the last norm.
  std::vector<std::pair<std::int32_t, double>> raises{};
};

// Returns the points that strong_neurons() requires.
std::vector<Point> points_of_neurons(const Model& model);

// Returns the `most` neurons of each layer that add most to the residual stream at this token, by falling norm, each
// with `most_tokens` tokens. Throws Cancelled.
std::vector<std::vector<StrongNeuron>> strong_neurons(const Model& model, const Recording& recording, std::size_t token,
                                                      std::size_t most, std::size_t most_tokens);

}  // namespace minimind
