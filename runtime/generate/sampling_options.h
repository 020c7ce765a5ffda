#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace minimind {

// A value added to the logit of a token; minus infinity bans the token.
struct LogitBias {
  std::int32_t token;
  double bias;
};

// DRY, "don't repeat yourself" (text-generation-webui pull request 5677), with the defaults of llama.cpp. A token that
// would continue a repetition loses multiplier * base ^ (n - allowed_length). n >= allowed_length is the number of
// tokens at the end of the text that also precede an earlier occurrence of that token.
struct DryOptions {
  double multiplier = 0;                                             // 0: off
  double base = 1.75;                                                // at least 1
  std::size_t allowed_length = 2;                                    // shorter repetitions are not penalised
  std::size_t penalty_last_n = 64;                                   // number of last tokens considered; 0: off
  std::vector<std::string> sequence_breakers{"\n", ":", "\"", "*"};  // strings that end a repetition

  bool on() const { return multiplier > 0 && penalty_last_n > 0; }
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
