#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "runtime/engine/model.h"

namespace minimind {

// Returns the indices of the `most` largest values, the largest first; of equal ones, the first one first.
std::vector<std::size_t> largest(std::span<const float> values, std::size_t most);

// Returns exp(x) / sum(exp(x)).
std::vector<double> softmax(std::span<const float> x);

// sqrt(sum(x²))
double euclidean_norm(std::span<const float> x);

// 1 / sqrt(mean(x²) + eps)
double norm_scale(std::span<const float> x, double eps);

// Calls take(token, products) for each token of the vocabulary, in order, with the products of its row of the output
// matrix and each of the vectors [n, hidden_size], which are exact also for a quantised matrix. Throws Cancelled.
void multiply_output(const Model& model, std::span<const float> vectors,
                     const std::function<void(std::size_t token, std::span<const float> products)>& take);

}  // namespace minimind
