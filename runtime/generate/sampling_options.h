#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weights/base/error.h"

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

// With these limits no finite logit can overflow a double.
inline constexpr double largest_factor = 1e6, smallest_factor = 1e-6, largest_term = 1e6;
inline constexpr std::size_t largest_whole = 1 << 30;

// MiniMind's defaults (eval_llm.py).
struct SamplingOptions {
  double temperature = 0.85;                  // 0 takes the largest logit
  std::size_t top_k = 50;                     // 0: off
  double typical_p = 1;                       // 1: off
  double top_p = 0.95;                        // 1: off
  double min_p = 0;                           // 0: off
  double repeat_penalty = 1;                  // 1: off
  double presence_penalty = 0;                // 0: off
  double frequency_penalty = 0;               // 0: off
  std::size_t repeat_last_n = largest_whole;  // number of last tokens that these three penalties are for; 0: off
  DryOptions dry;
  std::vector<LogitBias> logit_bias;  // at most one per token
  std::uint64_t seed = 0;
};

// How a text is generated and where it ends, as people and programs ask for it.
struct GenerationParameters {
  SamplingOptions sampling{};           // all but its seed
  std::size_t max_tokens = 512;         // the most that are generated
  std::optional<std::uint64_t> seed{};  // std::nullopt: none is asked for
  std::vector<std::string> stop{};      // any of them ends the text and is not part of it
  bool ignore_eos = false;              // end tokens do not end the text
};

// One of them. The command line, every API and check() have its names, its range, its default and its help from here.
struct GenerationParameter {
  template <class Value>
  using Member = Value* (*)(GenerationParameters&);

  std::string_view name;    // with - in place of _ on the command line
  std::string_view alias;   // in the APIs over HTTP; empty: none
  std::string_view symbol;  // of its value, in help
  std::variant<Member<double>, Member<std::size_t>, Member<std::optional<std::uint64_t>>,
               Member<std::vector<std::string>>>
      value;
  double least, most;  // of a number, as all up to `off`
  bool or_zero;        // 0 is allowed, too
  double off;          // the value that changes nothing
  std::string_view help, chinese_help;
  std::string_view sglang{}, ollama{};  // the only name in that API; empty: as in the others

  bool is_number() const { return value.index() < 2; }
  bool counts() const { return value.index() == 1; }                // it is a whole number
  double of(const GenerationParameters& parameters) const;          // this and the rest are for numbers
  void set(GenerationParameters& parameters, double number) const;  // throws ParameterError for one that it cannot have
  bool fits(double number) const { return (number >= least && number <= most) || (or_zero && number == 0); }
  std::string range() const;  // in words, such as "0 to 1"
};

inline constexpr GenerationParameter generation_parameters[] = {
    {"max_tokens", "max_completion_tokens", "N", [](GenerationParameters& p) { return &p.max_tokens; }, 0,
     largest_whole, false, largest_whole, "generate at most N tokens per text", "每段文本最多生成 N 个词元",
     "max_new_tokens", "num_predict"},
    {"stop", "", "TEXT", [](GenerationParameters& p) { return &p.stop; }, 0, 0, false, 0,
     "end before this text; may be repeated", "在此文本之前停止；可多次指定"},
    {"seed", "random_seed", "N", [](GenerationParameters& p) { return &p.seed; }, 0, 0, false, 0,
     "seed of the samples; makes a run repeatable (default: random, printed)",
     "采样的随机种子，用于复现结果（默认：随机，并打印）", "sampling_seed"},
    {"temperature", "", "X", [](GenerationParameters& p) { return &p.sampling.temperature; }, smallest_factor,
     largest_factor, true, 1, "temperature of the samples; 0: always the top-1 token",
     "采样温度；0：总取概率最高的词元"},
    {"top_k", "", "K", [](GenerationParameters& p) { return &p.sampling.top_k; }, 0, largest_whole, false, 0,
     "sample from the k most likely tokens; 0: off", "从概率最高的 k 个词元中采样；0：关闭"},
    {"typical_p", "", "P", [](GenerationParameters& p) { return &p.sampling.typical_p; }, 0, 1, false, 1,
     "sample from the most typical tokens of total probability p; 1: off",
     "从最典型、累计概率达 p 的词元中采样；1：关闭"},
    {"top_p", "", "P", [](GenerationParameters& p) { return &p.sampling.top_p; }, 0, 1, false, 1,
     "sample from the most likely tokens of total probability p; 1: off", "从概率最高、累计达 p 的词元中采样；1：关闭"},
    {"min_p", "", "P", [](GenerationParameters& p) { return &p.sampling.min_p; }, 0, 1, false, 0,
     "drop tokens below p times the top-1 probability; 0: off", "丢弃概率低于最高概率 p 倍的词元；0：关闭"},
    {"repeat_penalty", "repetition_penalty", "X", [](GenerationParameters& p) { return &p.sampling.repeat_penalty; },
     smallest_factor, largest_factor, false, 1, "penalty for tokens in the text so far; 1: off",
     "对已出现词元的惩罚；1：关闭"},
    {"presence_penalty", "", "X", [](GenerationParameters& p) { return &p.sampling.presence_penalty; }, -largest_term,
     largest_term, false, 0, "penalty for tokens generated before; 0: off", "对已生成词元的惩罚；0：关闭"},
    {"frequency_penalty", "", "X", [](GenerationParameters& p) { return &p.sampling.frequency_penalty; }, -largest_term,
     largest_term, false, 0, "penalty per occurrence of a generated token; 0: off",
     "按已生成词元的出现次数惩罚；0：关闭"},
    {"repeat_last_n", "", "N", [](GenerationParameters& p) { return &p.sampling.repeat_last_n; }, 0, largest_whole,
     false, largest_whole,
     "repeat, presence and frequency penalties are for the last N tokens, not the whole text; 0: off",
     "重复、存在和频率惩罚只针对最近 N 个词元，而非整个文本；0：关闭"},
    {"dry_multiplier", "", "X", [](GenerationParameters& p) { return &p.sampling.dry.multiplier; }, 0, largest_factor,
     false, 0, "strength of DRY, which penalises repeated passages; 0: off", "DRY 的强度，抑制重复片段；0：关闭"},
    {"dry_base", "", "X", [](GenerationParameters& p) { return &p.sampling.dry.base; }, 1, largest_factor, false, 1.75,
     "growth of the DRY penalty per repeated token", "每多重复一个词元，DRY 惩罚增长的倍数"},
    {"dry_allowed_length", "", "N", [](GenerationParameters& p) { return &p.sampling.dry.allowed_length; }, 0,
     largest_whole, false, 2, "no DRY penalty for repetitions of fewer tokens", "短于此长度的重复不受 DRY 惩罚"},
    {"dry_penalty_last_n", "", "N", [](GenerationParameters& p) { return &p.sampling.dry.penalty_last_n; }, 0,
     largest_whole, false, 64, "DRY looks for repetitions in the last N tokens; 0: off",
     "DRY 在最近 N 个词元中查找重复；0：关闭"},
};

// A parameter with a value that it cannot have: "NAME PROBLEM".
class ParameterError : public UsageError {
 public:
  ParameterError(std::string_view with_name, const std::string& with_problem)
      : UsageError(std::string(with_name) + " " + with_problem), name(with_name), problem(with_problem) {}

  const std::string name, problem;
};

}  // namespace minimind
