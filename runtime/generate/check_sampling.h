#pragma once

#include "runtime/generate/sampling_options.h"

namespace minimind {

// Throws ParameterError for a value out of its range.
void check(const SamplingOptions& options);

// Returns the options that change nothing: tokens are drawn with the probabilities of the model.
SamplingOptions sampling_off();

}  // namespace minimind
