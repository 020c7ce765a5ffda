#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
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

// Throws Error if the logits have NaN or infinity, as those of corrupt weights do.
void check_finite(std::span<const float> logits);

// Samples tokens in the order of MiniMind's generate(). Steps that it lacks are at the position of their own
// definition:
//   1. tokens that are not allowed, or banned by a bias of minus infinity, are dropped; biases are added, as in
//   OpenAI's API;
//   2. logits / temperature;
//   3. repeat penalty, for every token of the prompt or generated: a positive logit is divided by it, a negative logit
//      multiplied. Presence and frequency penalties follow with OpenAI's meaning: a generated token that has appeared
//      n > 0 times loses presence + n * frequency. Then the penalties of the caller, such as those of Dry, are added;
//   4. top-k: logits below the k-th largest are dropped; logits equal to it stay;
//   5. typical-p (Meister et al., arXiv:2202.00666): the smallest set whose sum exceeds p stays, in the order of the
//      distance of -log(probability) from the entropy;
//   6. top-p: the smallest set of largest probabilities whose sum exceeds p stays;
//   7. min-p: probabilities below min_p times the top-1 probability are dropped.
// Equal seeds and logits give equal tokens on every machine.
class Sampler {
 public:
  // Throws UsageError if a logit bias is for a token that is not in the vocabulary.
  Sampler(const SamplingOptions& options, std::size_t vocab_size);

  // Records a token of the prompt or a generated token for the penalties.
  void accept_prompt(std::int32_t token);
  void accept(std::int32_t token);

  // Samples the next token among those with allowed[token] != 0; `allowed` [vocab] may be empty, which allows all.
  // `penalties` are at most one per token. Throws Error if the logits have NaN or infinity, as those of corrupt weights
  // do, and if no token is left.
  std::int32_t sample(std::span<const float> logits, std::span<const std::uint8_t> allowed = {},
                      std::span<const LogitBias> penalties = {});

 private:
  struct Candidate {
    std::int32_t token;
    double logit;
    double probability;
  };
  static bool before(const Candidate& a, const Candidate& b);
  double score(std::size_t token, float logit) const;
  bool is_plain() const;
  std::int32_t largest(std::span<const float> logits) const;
  bool ranks() const;
  void gather(std::span<const float> logits);
  // Memory to find the largest values.
  template <class Value>
  struct LargeValues {
    std::vector<Value> maxima, ordered;
  };
  template <class Value, class Use>
  void for_each_large(std::span<const Value> values, LargeValues<Value>& scratch, Use use) const;
  void keep_top_k();
  void keep_typical_p();
  void keep_top_p();
  void keep_until_sum_exceeds(double p);
  void keep_min_p();
  void softmax();
  double uniform();

  SamplingOptions options_;
  std::vector<bool> seen_;                // [vocab], in the prompt or generated
  std::vector<std::uint32_t> generated_;  // [vocab], how often generated
  std::vector<double> bias_;              // [vocab], or empty if there is none
  std::vector<double> penalties_;         // [vocab], those of the caller, or empty until there are some
  std::span<const std::uint8_t> allowed_;
  std::vector<double> scores_;  // [vocab], minus infinity for excluded tokens
  LargeValues<double> large_scores_;
  LargeValues<float> large_logits_;
  std::vector<Candidate> candidates_;  // remaining tokens; the largest logit first, if there is a step that drops some
  std::mt19937_64 random_;
};

}  // namespace minimind
