#include "runtime/generate/sampling_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "weights/io/error.h"

namespace minimind {
namespace {

void require(bool fits, const char* option, double value, const char* wanted) {
  if (!fits) throw UsageError(fmt::format("{} is {}, expected {}", option, value, wanted));
}

void check(const DryOptions& dry) {
  require(dry.multiplier >= 0 && dry.multiplier <= 1e6, "dry-multiplier", dry.multiplier, "0 to 1e6");
  require(dry.base >= 1 && dry.base <= 1e6, "dry-base", dry.base, "1 to 1e6");
  const auto& breakers = dry.sequence_breakers;
  if (std::find(breakers.begin(), breakers.end(), "") != breakers.end()) {
    throw UsageError("dry-sequence-breaker is empty, expected a string");
  }
}

void check(std::vector<LogitBias> biases) {
  for (const LogitBias& bias : biases) {
    const bool bans = bias.bias == -std::numeric_limits<double>::infinity();
    require(bans || std::fabs(bias.bias) <= 1e6, "logit-bias", bias.bias, "-1e6 to 1e6, or -inf");
  }
  const auto before = [](const LogitBias& a, const LogitBias& b) { return a.token < b.token; };
  const auto same = [](const LogitBias& a, const LogitBias& b) { return a.token == b.token; };
  std::sort(biases.begin(), biases.end(), before);
  const auto twice = std::adjacent_find(biases.begin(), biases.end(), same);
  if (twice != biases.end()) throw UsageError(fmt::format("logit-bias of token {} is repeated", twice->token));
}

}  // namespace

void check(const SamplingOptions& options) {
  // With these limits no finite logit can overflow a double.
  const auto factor = [](double value) { return value >= 1e-6 && value <= 1e6; };
  const auto term = [](double value) { return std::fabs(value) <= 1e6; };
  require(options.temperature == 0 || factor(options.temperature), "temperature", options.temperature,
          "0, or 1e-6 to 1e6");
  require(options.typical_p > 0 && options.typical_p <= 1, "typical-p", options.typical_p, "more than 0 and at most 1");
  require(options.top_p > 0 && options.top_p <= 1, "top-p", options.top_p, "more than 0 and at most 1");
  require(options.min_p >= 0 && options.min_p <= 1, "min-p", options.min_p, "0 to 1");
  require(factor(options.repeat_penalty), "repeat-penalty", options.repeat_penalty, "1e-6 to 1e6");
  require(term(options.presence_penalty), "presence-penalty", options.presence_penalty, "-1e6 to 1e6");
  require(term(options.frequency_penalty), "frequency-penalty", options.frequency_penalty, "-1e6 to 1e6");
  check(options.dry);
  check(options.logit_bias);
}

}  // namespace minimind
