#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace minimind {

// DRY, "don't repeat yourself" (text-generation-webui pull request 5677), with the defaults of llama.cpp. A token that
// would continue a repetition loses multiplier * base ^ (n - allowed_length), where n >= allowed_length is the number
// of tokens at the end of the text that also stand before an earlier occurrence of that token.
struct DryOptions {
  double multiplier = 0;                                             // 0: off
  double base = 1.75;                                                // at least 1
  std::size_t allowed_length = 2;                                    // repetitions of fewer tokens cost nothing
  std::size_t penalty_last_n = 64;                                   // how many tokens are looked at; 0: off
  std::vector<std::string> sequence_breakers{"\n", ":", "\"", "*"};  // texts that no repetition reaches across

  bool on() const { return multiplier > 0 && penalty_last_n > 0; }
};

class Dry {
 public:
  // `token_texts` [vocab], the bytes of each token; empty if there are no breakers.
  Dry(const DryOptions& options, std::vector<std::string> token_texts);

  // The next token of the text.
  void accept(std::int32_t token);

  struct Penalty {
    std::int32_t token;
    double amount;
  };
  // What tokens lose, each of them once, in no order. A token that holds a breaker loses nothing. Valid until accept().
  std::span<const Penalty> penalties();

 private:
  DryOptions options_;
  std::vector<std::string> token_texts_;
  std::vector<bool> is_breaker_;  // [vocab]
  std::string tail_;              // the end of the text, long enough to begin a breaker
  std::size_t longest_breaker_ = 0;
  std::size_t since_breaker_ = 0;  // tokens that begin after the last breaker
  std::vector<std::int32_t> tokens_;
  std::vector<std::size_t> repeated_;  // of penalties()
  std::vector<Penalty> penalties_;
};

// Added to the logit of a token; minus infinity bans it.
struct LogitBias {
  std::int32_t token;
  double bias;
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
  std::vector<LogitBias> logit_bias;  // of one token at most once
  std::uint64_t seed = 0;
};

// Throws UsageError for a value out of its range. The message starts with its name, such as "top-p".
void check(const SamplingOptions& options);

// The bytes of a token, valid while the tokenizer is.
using TokenText = std::function<std::string_view(std::int32_t)>;

// Draws tokens in the order of MiniMind's generate(), with what it does not have where its own meaning puts it:
//   1. tokens that are not allowed, or banned by a bias of minus infinity, go; biases are added, as OpenAI's are;
//   2. logits / temperature;
//   3. repeat penalty, for every token of the prompt or generated: a positive logit is divided by it, a negative one
//      multiplied. Presence and frequency penalties follow here with OpenAI's meaning: a generated token that has
//      appeared n > 0 times loses presence + n * frequency. Then DRY's, over prompt and generated tokens alike;
//   4. top-k: logits below the k-th largest go; equals of it stay;
//   5. typical-p (Meister et al., arXiv:2202.00666): the smallest set whose sum exceeds p stays, taken in the order of
//      how near each -log(probability) is to the entropy;
//   6. top-p: the smallest set of largest probabilities whose sum exceeds p stays;
//   7. min-p: probabilities below min_p times the largest go.
// The same seed gives the same tokens for the same logits, on every machine.
class Sampler {
 public:
  // `token_text` spells the tokens for DRY's sequence breakers and may be empty. Throws UsageError if DRY is on with
  // breakers but `token_text` is empty, or if a logit bias is for a token that is not in the vocabulary.
  Sampler(const SamplingOptions& options, std::size_t vocab_size, const TokenText& token_text = {});

  // A token that penalties must know of, from the prompt or generated.
  void accept_prompt(std::int32_t token);
  void accept(std::int32_t token);

  // The next token, among those with allowed[token] != 0; `allowed` [vocab] may be empty, for all. Throws Error when
  // the logits hold NaN or infinity, as those of corrupt weights do, and when no token is left.
  std::int32_t sample(std::span<const float> logits, std::span<const std::uint8_t> allowed = {});

 private:
  struct Candidate {
    std::int32_t token;
    double logit;
    double probability;
  };
  static bool before(const Candidate& a, const Candidate& b);
  double score(std::size_t token, float logit) const;
  std::int32_t largest(std::span<const float> logits) const;
  void gather(std::span<const float> logits);
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
  std::optional<Dry> dry_;
  std::vector<double> dry_penalties_;  // [vocab], or empty if DRY is off
  std::span<const std::uint8_t> allowed_;
  std::vector<Candidate> candidates_;  // those left, largest logit first once keep_top_k has run
  std::mt19937_64 random_;
};

}  // namespace minimind
