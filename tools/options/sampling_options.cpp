#include "tools/options/sampling_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

#include "runtime/text/utf8.h"
#include "tools/options/option_checks.h"
#include "weights/io/error.h"
#include "weights/io/quote.h"

namespace minimind {
namespace {

void add_dry_options(CLI::App& command, SamplingArguments& arguments) {
  DryOptions& dry = arguments.options.dry;
  command.add_option("--dry-multiplier", dry.multiplier, "strength of DRY, which penalises repeated passages; 0: off")
      ->capture_default_str()
      ->check(a_number);
  command.add_option("--dry-base", dry.base, "growth of the DRY penalty per repeated token")
      ->capture_default_str()
      ->check(a_number);
  command.add_option("--dry-allowed-length", dry.allowed_length, "no DRY penalty for repetitions of fewer tokens")
      ->capture_default_str()
      ->transform(whole_number(0, 1 << 30));
  command
      .add_option("--dry-penalty-last-n", dry.penalty_last_n, "DRY looks for repetitions in the last N tokens; 0: off")
      ->capture_default_str()
      ->transform(whole_number(0, 1 << 30));
  command
      .add_option("--dry-sequence-breaker", arguments.dry_sequence_breakers,
                  "DRY repetitions end at this text; may be repeated; none: nowhere (default: newline : \" and *)")
      ->allow_extra_args(false);
}

// Returns the breakers of the command line instead of the default ones.
std::vector<std::string> breakers_of(const SamplingArguments& arguments) {
  const std::vector<std::string>& given = arguments.dry_sequence_breakers;
  if (given.empty()) return arguments.options.dry.sequence_breakers;
  if (given == std::vector<std::string>{"none"}) return {};
  if (std::find(given.begin(), given.end(), "none") != given.end()) {
    throw UsageError("--dry-sequence-breaker none excludes all others; give either");
  }
  if (!std::all_of(given.begin(), given.end(), is_utf8))
    throw UsageError("--dry-sequence-breaker is not UTF-8, expected UTF-8");
  return given;
}

}  // namespace

void SamplingArguments::add_to(CLI::App& command) {
  CLI::Option* const temperature =
      command.add_option("--temperature", options.temperature, "temperature of the samples; 0: always the top-1 token")
          ->capture_default_str()
          ->check(a_number);
  command.add_option("--top-k", options.top_k, "sample from the k most likely tokens; 0: off")
      ->capture_default_str()
      ->transform(whole_number(0, 1 << 30));
  command
      .add_option("--typical-p", options.typical_p,
                  "sample from the most typical tokens of total probability p; 1: off")
      ->capture_default_str()
      ->check(a_number);
  command.add_option("--top-p", options.top_p, "sample from the most likely tokens of total probability p; 1: off")
      ->capture_default_str()
      ->check(a_number);
  command.add_option("--min-p", options.min_p, "drop tokens below p times the top-1 probability; 0: off")
      ->capture_default_str()
      ->check(a_number);
  command.add_option("--repeat-penalty", options.repeat_penalty, "penalty for tokens in the text so far; 1: off")
      ->capture_default_str()
      ->check(a_number);
  command.add_option("--presence-penalty", options.presence_penalty, "penalty for tokens generated before; 0: off")
      ->capture_default_str()
      ->check(a_number);
  command
      .add_option("--frequency-penalty", options.frequency_penalty,
                  "penalty per occurrence of a generated token; 0: off")
      ->capture_default_str()
      ->check(a_number);
  add_dry_options(command, *this);
  command
      .add_option("--logit-bias", logit_bias,
                  "ID+BIAS or ID-BIAS makes a token more or less likely; ID-inf bans it; may be repeated")
      ->allow_extra_args(false);
  constraint.add_to(command, true);
  command.add_option("--seed", seed, "seed of the samples; makes a run repeatable (default: random, printed)")
      ->transform(whole_number(0, UINT64_MAX));
  command.add_flag("--greedy", greedy, "always take the top-1 token")->excludes(temperature);
}

SamplingOptions SamplingArguments::sampling() const {
  SamplingOptions sampling = options;
  if (greedy) sampling.temperature = 0;
  sampling.dry.sequence_breakers = breakers_of(*this);
  for (const std::string& bias : logit_bias) sampling.logit_bias.push_back(parse_logit_bias(bias));
  try {
    check(sampling);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("--{}", error.what()));
  }
  sampling.seed = seed ? *seed : std::random_device{}();
  return sampling;
}

LogitBias parse_logit_bias(const std::string& text) {
  LogitBias bias{};
  const char* const end = text.data() + text.size();
  const auto [sign, id_error] = std::from_chars(text.data(), end, bias.token);
  const bool signed_bias = id_error == std::errc() && bias.token >= 0 && sign != end && (*sign == '+' || *sign == '-');
  if (signed_bias) {
    const auto [rest, error] = std::from_chars(sign + 1, end, bias.bias);
    if (error == std::errc() && rest == end && sign[1] != '-' && !std::isnan(bias.bias)) {
      if (*sign == '-') bias.bias = -bias.bias;
      return bias;
    }
  }
  throw UsageError(fmt::format(
      "--logit-bias is {}, expected a token id, + or -, and a number or inf, such as 15043-1.5", quote(text)));
}

}  // namespace minimind
