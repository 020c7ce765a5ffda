#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/generate/dry.h"

namespace minimind {

// A value added to the logit of a token; minus infinity bans the token.
struct LogitBias {
  std::int32_t token;
  double bias;
};

// MiniMind's defaults (eval_llm.py).
struct SamplingOptions {
  double temperature = 0.85;     // 0 takes the largest logit
  std::size_t top_k = 50;        // 0: off
  double typical_p = 1;          // 1: off
  double top_p = 0.95;           // 1: off
  double min_p = 0;              // 0: off
  double repeat_penalty = 1;     // 1: off
  double presence_penalty = 0;   // 0: off
  double frequency_penalty = 0;  // 0: off
  DryOptions dry;
  std::vector<LogitBias> logit_bias;  // at most one per token
  std::uint64_t seed = 0;
};

// Throws UsageError for a value out of its range. The message starts with its name, such as "top-p".
void check(const SamplingOptions& options);

}  // namespace minimind
