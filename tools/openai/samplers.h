#pragma once

#include "runtime/generate/sampling_options.h"
#include "tools/openai/body_fields.h"

namespace minimind {

// Reads llama.cpp's field `samplers`, the steps of sampling that are on, in their order: turns the others off. A
// Sampler has an order of its own; an order of steps that are on which would give another text throws RequestError.
void read_samplers(const BodyFields& body, GenerationParameters& parameters);

}  // namespace minimind
