#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/calibrate/second_moments.h"
#include "runtime/kernels/kernels.h"
#include "weights/checkpoint/checkpoint.h"

namespace minimind {

// Tokens of texts, one after the other. Each text is run in a separate context, from position 0.
struct CalibrationText {
  std::vector<std::int32_t> tokens;
  std::vector<std::size_t> ends;  // of each text
  std::vector<bool> predicted;    // of each token: whether it counts how well it is predicted; never a text's first
};

// What a text shows of the matrices of a checkpoint, by their names.
struct Measurement {
  std::map<std::string, SecondMoments> matrices;
  std::size_t predicted = 0;  // tokens
  double nats = 0;            // the sum of their negative log-likelihoods
};

// Runs the texts forward and back through the checkpoint, in f32 and layer by layer. The loss is the cross entropy with
// a token drawn from the model's own prediction, whose gradients have the Fisher information as their second moment
// (Martens 2014, arXiv:1412.1193). Calls progress(done, total) now and then. The result is equal for any number of
// threads. Throws Error, naming the layer, for activations that are not finite, and for tokens outside the vocabulary.
Measurement measure(const Checkpoint& checkpoint, const CalibrationText& text, const kernels::Table& kernels,
                    std::size_t threads, const std::function<void(std::size_t, std::size_t)>& progress);

}  // namespace minimind
