#pragma once

#include <cstdint>
#include <span>

#include "runtime/engine/forward.h"

namespace minimind {

// Runs the tokens after those of the context, in batches of forward.max_tokens(), and writes the logits of the last
// one [vocab_size]. Throws Cancelled, with fewer tokens in the context.
void prefill(Forward& forward, Context& context, std::span<const std::int32_t> tokens, std::span<float> logits);

}  // namespace minimind
