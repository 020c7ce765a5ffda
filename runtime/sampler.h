#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace minimind {

// MiniMind's defaults (eval_llm.py).
struct SamplingOptions {
  double temperature = 0.85;     // 0 takes the largest logit
  std::size_t top_k = 50;        // 0: off
  double top_p = 0.95;           // 1: off
  double min_p = 0;              // 0: off
  double repeat_penalty = 1;     // 1: off
  double presence_penalty = 0;   // 0: off
  double frequency_penalty = 0;  // 0: off
  std::uint64_t seed = 0;
};

// Throws UsageError, naming the option, for a value out of its range.
void check(const SamplingOptions& options);

// Draws tokens in the order of MiniMind's generate():
//   1. logits / temperature;
//   2. repeat penalty, for every token of the prompt or generated: a positive logit is divided by it, a negative one
//      multiplied. Presence and frequency penalties, which MiniMind does not have, follow here with OpenAI's meaning:
//      a generated token that has appeared n > 0 times loses presence + n * frequency;
//   3. top-k: logits below the k-th largest go; equals of it stay;
//   4. top-p: the smallest set of largest probabilities whose sum exceeds p stays;
//   5. min-p, ours: probabilities below min_p times the largest go.
// The same seed gives the same tokens for the same logits, on every machine.
class Sampler {
 public:
  Sampler(const SamplingOptions& options, std::size_t vocab_size);

  // A token that penalties must know of, from the prompt or generated.
  void accept_prompt(std::int32_t token);
  void accept(std::int32_t token);

  // The next token. Throws Error when the logits hold NaN or infinity, as those of damaged weights do.
  std::int32_t sample(std::span<const float> logits);

 private:
  struct Candidate {
    std::int32_t token;
    double logit;
    double probability;
  };
  void scale_and_penalize(std::span<const float> logits);
  void keep_top_k();
  void keep_top_p();
  void keep_min_p();
  void softmax();
  double uniform();

  SamplingOptions options_;
  std::vector<bool> seen_;                // [vocab], in the prompt or generated
  std::vector<std::uint32_t> generated_;  // [vocab], how often generated
  std::vector<Candidate> candidates_;     // those left, largest logit first once keep_top_k has run
  std::mt19937_64 random_;
};

}  // namespace minimind
