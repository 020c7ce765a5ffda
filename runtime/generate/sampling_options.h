#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
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

// A number that says how to sample. The command line, every API and check() have its name, its range and its default
// from here. On the command line the name has - in place of _.
struct SamplingParameter {
  std::string_view name;
  std::string_view alias;   // in the APIs of vLLM and SGLang; empty: the same
  std::string_view symbol;  // of its value, in help
  std::variant<double* (*)(SamplingOptions&), std::size_t* (*)(SamplingOptions&)> value;
  double least, most;
  bool or_zero;  // 0 is allowed, too
  double off;    // the value that changes nothing
  std::string_view help, chinese_help;

  double of(const SamplingOptions& options) const;
  void set(SamplingOptions& options, double number) const;
  bool fits(double number) const { return (number >= least && number <= most) || (or_zero && number == 0); }
  std::string range() const;  // in words, such as "0 to 1"
};

// With these limits no finite logit can overflow a double.
inline constexpr double largest_factor = 1e6, smallest_factor = 1e-6, largest_term = 1e6;
inline constexpr std::size_t largest_whole = 1 << 30;

inline constexpr std::array sampling_parameters{
    SamplingParameter{"temperature", "", "X", [](SamplingOptions& o) { return &o.temperature; }, smallest_factor,
                      largest_factor, true, 1, "temperature of the samples; 0: always the top-1 token",
                      "采样温度；0：总取概率最高的词元"},
    SamplingParameter{"top_k", "", "K", [](SamplingOptions& o) { return &o.top_k; }, 0, largest_whole, false, 0,
                      "sample from the k most likely tokens; 0: off", "从概率最高的 k 个词元中采样；0：关闭"},
    SamplingParameter{"typical_p", "", "P", [](SamplingOptions& o) { return &o.typical_p; }, 0, 1, false, 1,
                      "sample from the most typical tokens of total probability p; 1: off",
                      "从最典型、累计概率达 p 的词元中采样；1：关闭"},
    SamplingParameter{"top_p", "", "P", [](SamplingOptions& o) { return &o.top_p; }, 0, 1, false, 1,
                      "sample from the most likely tokens of total probability p; 1: off",
                      "从概率最高、累计达 p 的词元中采样；1：关闭"},
    SamplingParameter{"min_p", "", "P", [](SamplingOptions& o) { return &o.min_p; }, 0, 1, false, 0,
                      "drop tokens below p times the top-1 probability; 0: off",
                      "丢弃概率低于最高概率 p 倍的词元；0：关闭"},
    SamplingParameter{"repeat_penalty", "repetition_penalty", "X", [](SamplingOptions& o) { return &o.repeat_penalty; },
                      smallest_factor, largest_factor, false, 1, "penalty for tokens in the text so far; 1: off",
                      "对已出现词元的惩罚；1：关闭"},
    SamplingParameter{"presence_penalty", "", "X", [](SamplingOptions& o) { return &o.presence_penalty; },
                      -largest_term, largest_term, false, 0, "penalty for tokens generated before; 0: off",
                      "对已生成词元的惩罚；0：关闭"},
    SamplingParameter{"frequency_penalty", "", "X", [](SamplingOptions& o) { return &o.frequency_penalty; },
                      -largest_term, largest_term, false, 0, "penalty per occurrence of a generated token; 0: off",
                      "按已生成词元的出现次数惩罚；0：关闭"},
    SamplingParameter{"dry_multiplier", "", "X", [](SamplingOptions& o) { return &o.dry.multiplier; }, 0,
                      largest_factor, false, 0, "strength of DRY, which penalises repeated passages; 0: off",
                      "DRY 的强度，抑制重复片段；0：关闭"},
    SamplingParameter{"dry_base", "", "X", [](SamplingOptions& o) { return &o.dry.base; }, 1, largest_factor, false,
                      1.75, "growth of the DRY penalty per repeated token", "每多重复一个词元，DRY 惩罚增长的倍数"},
    SamplingParameter{"dry_allowed_length", "", "N", [](SamplingOptions& o) { return &o.dry.allowed_length; }, 0,
                      largest_whole, false, 2, "no DRY penalty for repetitions of fewer tokens",
                      "短于此长度的重复不受 DRY 惩罚"},
    SamplingParameter{"dry_penalty_last_n", "", "N", [](SamplingOptions& o) { return &o.dry.penalty_last_n; }, 0,
                      largest_whole, false, 64, "DRY looks for repetitions in the last N tokens; 0: off",
                      "DRY 在最近 N 个词元中查找重复；0：关闭"},
};

// Returns the options that change nothing: tokens are drawn with the probabilities of the model.
SamplingOptions sampling_off();

// Throws UsageError for a value out of its range. The message starts with its name, such as "top_p".
void check(const SamplingOptions& options);

}  // namespace minimind
