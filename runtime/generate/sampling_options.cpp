#include "runtime/generate/sampling_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "weights/base/error.h"

namespace minimind {
namespace {

void check(std::vector<LogitBias> biases) {
  for (const LogitBias& bias : biases) {
    const bool bans = bias.bias == -std::numeric_limits<double>::infinity();
    if (bans || std::fabs(bias.bias) <= largest_term) continue;
    throw UsageError(
        fmt::format("logit_bias is {}, expected {} to {}, or -inf", bias.bias, -largest_term, largest_term));
  }
  const auto before = [](const LogitBias& a, const LogitBias& b) { return a.token < b.token; };
  const auto same = [](const LogitBias& a, const LogitBias& b) { return a.token == b.token; };
  std::sort(biases.begin(), biases.end(), before);
  const auto twice = std::adjacent_find(biases.begin(), biases.end(), same);
  if (twice != biases.end()) throw UsageError(fmt::format("logit_bias of token {} is repeated", twice->token));
}

}  // namespace

double SamplingParameter::of(const SamplingOptions& options) const {
  // The function only says where the value is.
  return std::visit([&](auto member) { return static_cast<double>(*member(const_cast<SamplingOptions&>(options))); },
                    value);
}

void SamplingParameter::set(SamplingOptions& options, double number) const {
  const auto assign = [&](auto member) {
    auto& target = *member(options);
    target = static_cast<std::remove_reference_t<decltype(target)>>(number);
  };
  std::visit(assign, value);
}

std::string SamplingParameter::range() const {
  return fmt::format("{}{} to {}", or_zero ? "0, or " : "", least, most);
}

SamplingOptions sampling_off() {
  SamplingOptions options;
  for (const SamplingParameter& parameter : sampling_parameters) parameter.set(options, parameter.off);
  return options;
}

void check(const SamplingOptions& options) {
  for (const SamplingParameter& parameter : sampling_parameters) {
    const double value = parameter.of(options);
    if (parameter.fits(value)) continue;
    throw UsageError(fmt::format("{} is {}, expected {}", parameter.name, value, parameter.range()));
  }
  const auto& breakers = options.dry.sequence_breakers;
  if (std::find(breakers.begin(), breakers.end(), "") != breakers.end()) {
    throw UsageError("dry_sequence_breaker is empty, expected a string");
  }
  check(options.logit_bias);
}

}  // namespace minimind
