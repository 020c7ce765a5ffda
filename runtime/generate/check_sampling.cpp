#include "runtime/generate/check_sampling.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace minimind {
namespace {

void check(std::vector<LogitBias> biases) {
  for (const LogitBias& bias : biases) {
    const bool bans = bias.bias == -std::numeric_limits<double>::infinity();
    if (bans || std::fabs(bias.bias) <= largest_term) continue;
    throw ParameterError("logit_bias",
                         fmt::format("is {}, expected {} to {}, or -inf", bias.bias, -largest_term, largest_term));
  }
  std::ranges::sort(biases, {}, &LogitBias::token);
  const auto twice = std::ranges::adjacent_find(biases, {}, &LogitBias::token);
  if (twice != biases.end()) throw ParameterError("logit_bias", fmt::format("of token {} is repeated", twice->token));
}

}  // namespace

void check(const SamplingOptions& options) {
  GenerationParameters parameters{.sampling = options};
  for (const GenerationParameter& parameter : generation_parameters) {
    if (parameter.is_number()) parameter.set(parameters, parameter.of(parameters));  // throws
  }
  const auto& breakers = options.dry.sequence_breakers;
  if (std::find(breakers.begin(), breakers.end(), "") != breakers.end()) {
    throw ParameterError("dry_sequence_breaker", "is empty, expected a string");
  }
  check(options.logit_bias);
}

SamplingOptions sampling_off() {
  GenerationParameters parameters;
  for (const GenerationParameter& parameter : generation_parameters) {
    if (parameter.is_number()) parameter.set(parameters, parameter.off);
  }
  return parameters.sampling;
}

}  // namespace minimind
