#include "tools/options/generation_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>
#include <type_traits>
#include <variant>

#include "runtime/engine/forward.h"
#include "runtime/generate/check_sampling.h"
#include "runtime/generate/context_pool.h"
#include "runtime/text/utf8.h"
#include "tools/options/choose_tokenizer.h"
#include "tools/options/help.h"
#include "tools/options/option_checks.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"
#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

std::string option_of(std::string_view parameter) {
  std::string option = "--" + std::string(parameter);
  std::ranges::replace(option, '_', '-');
  return option;
}

// `least` is that of a count.
Option* add_parameter(CommandOptions& command, const GenerationParameter& parameter, GenerationParameters& given,
                      const char* group, std::size_t least = 0) {
  const std::string names = (parameter.name == "max_tokens" ? "-n," : "") + option_of(parameter.name);
  const std::string help = bilingual(parameter.help, parameter.chinese_help);
  const auto add = [&](auto member) {
    auto& value = *member(given);
    using Value = std::remove_reference_t<decltype(value)>;
    Option* const option = command.add_option(names, value, group, std::string(parameter.symbol), help);
    if constexpr (std::is_same_v<Value, double>) {
      return option->check(a_number)->capture_default_str();
    } else if constexpr (std::is_same_v<Value, std::size_t>) {
      return option->transform(whole_number(least, largest_whole))->capture_default_str();
    } else if constexpr (std::is_same_v<Value, std::optional<std::uint64_t>>) {
      return option->transform(whole_number(0, UINT64_MAX));
    } else {
      return option->allow_extra_args(false);
    }
  };
  return std::visit(add, parameter.value);
}

// Returns the breakers of the command line instead of the default ones.
std::vector<std::string> breakers_of(const SamplingArguments& arguments) {
  const std::vector<std::string>& given = arguments.dry_sequence_breakers;
  if (given.empty()) return arguments.given.sampling.dry.sequence_breakers;
  if (given == std::vector<std::string>{"none"}) return {};
  if (std::find(given.begin(), given.end(), "none") != given.end()) {
    throw UsageError("--dry-sequence-breaker none excludes all others; give either");
  }
  if (!std::all_of(given.begin(), given.end(), is_utf8))
    throw UsageError("--dry-sequence-breaker is not UTF-8, expected UTF-8");
  return given;
}

}  // namespace

void SamplingArguments::add_to(CommandOptions& command, std::size_t least_tokens) {
  for (const GenerationParameter& parameter : generation_parameters) {
    if (parameter.name == "stop") continue;  // see add_ends_to()
    const bool is_length = parameter.name == "max_tokens", is_common = is_length || parameter.name == "temperature";
    add_parameter(command, parameter, given, is_common ? common_group : sampling_group, is_length ? least_tokens : 0);
  }
  command
      .add_option(
          "--dry-sequence-breaker", dry_sequence_breakers, sampling_group, "TEXT",
          bilingual("DRY repetitions end at this text; may be repeated; none: nowhere (default: newline : \" and *)",
                    "DRY 的重复到此文本为止；可多次指定；none：不设（默认：换行、:、\" 和 *）"))
      ->allow_extra_args(false);
  command
      .add_option("--logit-bias", logit_bias, constraint_group, "ID+BIAS",
                  bilingual("ID+BIAS or ID-BIAS makes a token more or less likely; ID-inf bans it; may be repeated",
                            "ID+BIAS 或 ID-BIAS 提高或降低词元的概率，ID-inf 禁用词元；可多次指定"))
      ->allow_extra_args(false);
  constraint.add_to(command, true);
  command.add_flag("--greedy", greedy, sampling_group, bilingual("always take the top-1 token", "总取概率最高的词元"))
      ->excludes(command.get_option("--temperature"));
}

void SamplingArguments::add_ends_to(CommandOptions& command) {
  const auto stop = std::ranges::find(generation_parameters, "stop", &GenerationParameter::name);
  add_parameter(command, *stop, given, constraint_group);
  command.add_flag("--ignore-eos", given.ignore_eos, constraint_group,
                   bilingual("continue past the end of text", "遇到结束词元后继续生成"));
}

GenerationParameters SamplingArguments::parameters() const {
  GenerationParameters parameters = given;
  SamplingOptions& sampling = parameters.sampling;
  if (greedy) sampling.temperature = 0;
  sampling.dry.sequence_breakers = breakers_of(*this);
  for (const std::string& bias : logit_bias) sampling.logit_bias.push_back(parse_logit_bias(bias));
  try {
    check(sampling);
  } catch (const ParameterError& error) {
    throw UsageError(option_of(error.name) + " " + error.problem);
  }
  for (const std::string& text : given.stop) {
    if (text.empty() || !is_utf8(text))
      throw UsageError("--stop is empty or not UTF-8, expected a text of one or more characters");
  }
  if (!given.seed) parameters.seed = std::random_device{}();
  return parameters;
}

LogitBias parse_logit_bias(const std::string& text) {
  std::string_view rest = text;
  const auto token = take_number<std::int32_t>(rest);
  const bool is_negative = rest.starts_with('-');
  if (token && *token >= 0 && (is_negative || rest.starts_with('+'))) {
    rest.remove_prefix(1);
    const auto bias = number_in<double>(rest);
    if (bias && !rest.starts_with('-') && !std::isnan(*bias)) return {*token, is_negative ? -*bias : *bias};
  }
  throw UsageError(fmt::format(
      "--logit-bias is {}, expected a token id, + or -, and a number or inf, such as 15043-1.5", quote(text)));
}

void GenerationArguments::add_to(CommandOptions& command, std::size_t least_tokens) {
  add_checkpoint(command, checkpoint.model);
  add_reading_options(command, least_tokens);
}

void GenerationArguments::add_reading_options(CommandOptions& command, std::size_t least_tokens) {
  checkpoint.add_reading_options(command);
  add_tokenizer(command, tokenizer);
  command
      .add_option(
          "-c,--ctx-size", context, model_group, "N",
          bilingual("context size in tokens (default: the model's)", "上下文长度，以词元计（默认：模型自身的长度）"))
      ->transform(whole_number(1, largest_whole));
  sampling.add_to(command, least_tokens);
  run.add_to(command);
}

void ParallelArguments::add_to(CommandOptions& command) {
  command
      .add_option("--parallel", texts, speed_group, "N",
                  bilingual("generate up to N texts at once", "最多同时生成 N 段文本"))
      ->capture_default_str()
      ->transform(whole_number(1, batch_tokens - 1));
  command
      .add_option("--kv-memory", kv_memory_mb, speed_group, "MB",
                  bilingual("memory for the keys and values of all texts, in MB (default: half of what is free)",
                            "所有文本的 KV 缓存可用的内存，单位 MB（默认：空闲内存的一半）"))
      ->transform(whole_number(1, largest_whole));
}

std::size_t ParallelArguments::kv_memory(bool quiet) const {
  if (kv_memory_mb) return *kv_memory_mb * 1'000'000;
  const std::size_t bytes = ContextPool::default_budget();
  if (!quiet) {
    note("keys and values may take {:.1f} GB, half of the memory that is free; --kv-memory sets another limit",
         1e-9 * static_cast<double>(bytes));
  }
  return bytes;
}

double per_second(std::size_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

nlohmann::ordered_json speculation_json(std::size_t drafted, std::size_t accepted) {
  nlohmann::ordered_json rate;
  if (drafted > 0) rate = static_cast<double>(accepted) / static_cast<double>(drafted);
  return {{"drafted", drafted}, {"accepted", accepted}, {"acceptance_rate", rate}};
}

}  // namespace minimind
