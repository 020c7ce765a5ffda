#include "tools/options/sampling_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>
#include <string_view>
#include <variant>

#include "runtime/text/utf8.h"
#include "tools/options/help.h"
#include "tools/options/option_checks.h"
#include "tools/terminal/language.h"
#include "weights/base/error.h"
#include "weights/base/quote.h"

namespace minimind {
namespace {

std::string option_of(std::string_view parameter) {
  std::string option = "--" + std::string(parameter);
  std::ranges::replace(option, '_', '-');
  return option;
}

Option* add_number(CommandOptions& command, const std::string& option, double& number, const std::string& help) {
  return command.add_option(option, number, help)->check(a_number);
}

Option* add_number(CommandOptions& command, const std::string& option, std::size_t& number, const std::string& help) {
  return command.add_option(option, number, help)->transform(whole_number(0, largest_whole));
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

void SamplingArguments::add_to(CommandOptions& command) {
  command
      .add_option("--seed", seed,
                  bilingual("seed of the samples; makes a run repeatable (default: random, printed)",
                            "采样的随机种子，用于复现结果（默认：随机，并打印）"))
      ->group(sampling_group)
      ->type_name("N")
      ->transform(whole_number(0, UINT64_MAX));
  for (const SamplingParameter& parameter : sampling_parameters) {
    const auto add = [&](auto value) {
      const std::string help = bilingual(parameter.help, parameter.chinese_help);
      return add_number(command, option_of(parameter.name), *value(options), help);
    };
    const bool is_common = parameter.name == "temperature";
    std::visit(add, parameter.value)
        ->group(is_common ? common_group : sampling_group)
        ->type_name(std::string(parameter.symbol))
        ->capture_default_str();
  }
  command
      .add_option(
          "--dry-sequence-breaker", dry_sequence_breakers,
          bilingual("DRY repetitions end at this text; may be repeated; none: nowhere (default: newline : \" and *)",
                    "DRY 的重复到此文本为止；可多次指定；none：不设（默认：换行、:、\" 和 *）"))
      ->group(sampling_group)
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command
      .add_option("--logit-bias", logit_bias,
                  bilingual("ID+BIAS or ID-BIAS makes a token more or less likely; ID-inf bans it; may be repeated",
                            "ID+BIAS 或 ID-BIAS 提高或降低词元的概率，ID-inf 禁用词元；可多次指定"))
      ->group(constraint_group)
      ->type_name("ID+BIAS")
      ->allow_extra_args(false);
  constraint.add_to(command, true);
  command.add_flag("--greedy", greedy, bilingual("always take the top-1 token", "总取概率最高的词元"))
      ->group(sampling_group)
      ->excludes(command.get_option("--temperature"));
}

SamplingOptions SamplingArguments::sampling() const {
  SamplingOptions sampling = options;
  if (greedy) sampling.temperature = 0;
  sampling.dry.sequence_breakers = breakers_of(*this);
  for (const std::string& bias : logit_bias) sampling.logit_bias.push_back(parse_logit_bias(bias));
  try {
    check(sampling);
  } catch (const UsageError& error) {
    const std::string message = error.what();
    const std::size_t name = message.find(' ');
    throw UsageError(option_of(message.substr(0, name)) + message.substr(name));
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
