#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "runtime/generate/sampling_options.h"

namespace minimind {

// Throws Error if the logits have NaN or infinity, as those of corrupt weights do.
void check_finite(std::span<const float> logits);

// A token that may be sampled.
struct Candidate {
  std::int32_t token;
  double logit;
  double probability;
};

// A search for the largest of many values, none of them NaN, in one pass that compares several side by side.
class LargeValues {
 public:
  // Returns the indices of the k largest values, k > 0, of all that equal the last of these, and of few others. They
  // are valid until the next call.
  std::span<const std::size_t> find(std::span<const float> values, std::size_t k);

 private:
  void find_column_maxima(std::span<const float> values);

  std::vector<float> maxima_, ordered_;
  std::vector<std::size_t> found_;
};

// Samples tokens in the order of MiniMind's generate(). Steps that it lacks are at the position of their own
// definition:
//   1. tokens that are not allowed, or banned by a bias of minus infinity, are dropped; biases are added, as in
//   OpenAI's API;
//   2. logits / temperature;
//   3. repeat penalty, for every token of the prompt or generated: a positive logit is divided by it, a negative logit
//      multiplied. Presence and frequency penalties follow with OpenAI's meaning: a generated token that has appeared
//      n > 0 times loses presence + n * frequency. All three are for the last repeat_last_n tokens. Then the penalties
//      of the caller, such as those of Dry, are added;
//   4. top-k: logits below the k-th largest are dropped; logits equal to it stay;
//   5. the steps of sampler.cpp that drop tokens by their probabilities, in their order there, which defines them.
// Equal seeds and logits give equal tokens on every machine.
class Sampler {
 public:
  // Throws UsageError if a logit bias is for a token that is not in the vocabulary.
  Sampler(const SamplingOptions& options, std::size_t vocab_size);

  // Records a generated token, or one of the prompt, for the penalties.
  void accept(std::int32_t token, bool is_generated = true);

  // Samples the next token among those with allowed[token] != 0; `allowed` [vocab] may be empty, which allows all.
  // `penalties` are at most one per token. Throws Error if the logits have NaN or infinity, as those of corrupt weights
  // do, and if no token is left.
  std::int32_t sample(std::span<const float> logits, std::span<const std::uint8_t> allowed = {},
                      std::span<const LogitBias> penalties = {});
  // Returns the tokens that the last sample was from. At temperature 0 that is the top-1 token, without a probability.
  std::span<const Candidate> candidates() const { return candidates_; }

 private:
  double score(std::size_t token, float logit) const;
  bool is_plain() const;
  bool ranks() const;
  void gather(std::span<const float> logits, std::size_t k);
  double uniform();

  SamplingOptions options_;
  std::vector<std::uint32_t> seen_;                 // [vocab], how often in the prompt or generated
  std::vector<std::uint32_t> generated_;            // [vocab], how often generated
  std::deque<std::pair<std::int32_t, bool>> last_;  // what was accepted and counts, if not all does
  std::vector<double> bias_;                        // [vocab], or empty if there is none
  std::vector<double> penalties_;                   // [vocab], those of the caller, or empty until there are some
  std::span<const std::uint8_t> allowed_;
  std::vector<float> scores_;  // [vocab], rounded, minus infinity for excluded tokens
  LargeValues large_values_;
  std::vector<Candidate> candidates_;  // remaining tokens; the largest logit first, if there is a step that drops some
  std::mt19937_64 random_;
};

}  // namespace minimind
