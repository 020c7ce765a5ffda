#include "runtime/generate/sampling_options.h"

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

double GenerationParameter::of(const GenerationParameters& parameters) const {
  // The functions only say where the value is.
  auto& changeable = const_cast<GenerationParameters&>(parameters);
  const auto* const real = std::get_if<Member<double>>(&value);
  return real ? *(*real)(changeable) : static_cast<double>(*std::get<Member<std::size_t>>(value)(changeable));
}

void GenerationParameter::set(GenerationParameters& parameters, double number) const {
  if (const auto* const real = std::get_if<Member<double>>(&value)) {
    *(*real)(parameters) = number;
  } else {
    *std::get<Member<std::size_t>>(value)(parameters) = static_cast<std::size_t>(number);
  }
}

std::string GenerationParameter::range() const {
  return fmt::format("{}{} to {}", or_zero ? "0, or " : "", least, most);
}

void check(const SamplingOptions& options) {
  const GenerationParameters parameters{.sampling = options};
  for (const GenerationParameter& parameter : generation_parameters) {
    if (!parameter.is_number() || parameter.fits(parameter.of(parameters))) continue;
    throw ParameterError(parameter.name,
                         fmt::format("is {}, expected {}", parameter.of(parameters), parameter.range()));
  }
  const auto& breakers = options.dry.sequence_breakers;
  if (std::find(breakers.begin(), breakers.end(), "") != breakers.end()) {
    throw ParameterError("dry_sequence_breaker", "is empty, expected a string");
  }
  check(options.logit_bias);
}

}  // namespace minimind
