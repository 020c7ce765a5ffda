#include "runtime/sampler.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "weights/error.h"

namespace minimind {
namespace {

void require(bool fits, const char* option, double value, const char* wanted) {
  if (!fits) throw UsageError(fmt::format("--{} is {}, wanted {}", option, value, wanted));
}

}  // namespace

void check(const SamplingOptions& options) {
  // With these limits no finite logit can overflow a double.
  const auto factor = [](double value) { return value >= 1e-6 && value <= 1e6; };
  const auto term = [](double value) { return std::fabs(value) <= 1e6; };
  require(options.temperature == 0 || factor(options.temperature), "temperature", options.temperature,
          "0, or 1e-6 to 1e6");
  require(options.top_p > 0 && options.top_p <= 1, "top-p", options.top_p, "more than 0 and at most 1");
  require(options.min_p >= 0 && options.min_p <= 1, "min-p", options.min_p, "0 to 1");
  require(factor(options.repeat_penalty), "repeat-penalty", options.repeat_penalty, "1e-6 to 1e6");
  require(term(options.presence_penalty), "presence-penalty", options.presence_penalty, "-1e6 to 1e6");
  require(term(options.frequency_penalty), "frequency-penalty", options.frequency_penalty, "-1e6 to 1e6");
}

Sampler::Sampler(const SamplingOptions& options, std::size_t vocab_size)
    : options_(options), seen_(vocab_size), generated_(vocab_size), random_(options.seed) {
  candidates_.reserve(vocab_size);
}

void Sampler::accept_prompt(std::int32_t token) {
  seen_[static_cast<std::size_t>(token)] = true;
}

void Sampler::accept(std::int32_t token) {
  accept_prompt(token);
  ++generated_[static_cast<std::size_t>(token)];
}

std::int32_t Sampler::sample(std::span<const float> logits) {
  if (!std::all_of(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); })) {
    throw Error("the logits hold NaN or infinity: the checkpoint's weights are damaged or have overflowed");
  }
  scale_and_penalize(logits);
  if (options_.temperature == 0) {
    const auto larger = [](const Candidate& a, const Candidate& b) { return a.logit < b.logit; };
    return std::max_element(candidates_.begin(), candidates_.end(), larger)->token;
  }
  keep_top_k();
  keep_top_p();
  keep_min_p();
  softmax();
  double left = uniform();
  for (const Candidate& candidate : candidates_) {
    left -= candidate.probability;
    if (left < 0) return candidate.token;
  }
  return candidates_.back().token;
}

void Sampler::scale_and_penalize(std::span<const float> logits) {
  candidates_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    double logit = logits[i];
    if (options_.temperature != 0) logit /= options_.temperature;
    if (seen_[i]) logit = logit > 0 ? logit / options_.repeat_penalty : logit * options_.repeat_penalty;
    if (generated_[i] > 0) logit -= options_.presence_penalty + generated_[i] * options_.frequency_penalty;
    candidates_.push_back({static_cast<std::int32_t>(i), logit, 0});
  }
}

void Sampler::keep_top_k() {
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
  };
  if (options_.top_k > 0 && options_.top_k < candidates_.size()) {
    const auto kth = candidates_.begin() + static_cast<std::ptrdiff_t>(options_.top_k) - 1;
    std::nth_element(candidates_.begin(), kth, candidates_.end(), before);
    const double smallest = kth->logit;
    std::erase_if(candidates_, [&](const Candidate& candidate) { return candidate.logit < smallest; });
  }
  std::sort(candidates_.begin(), candidates_.end(), before);
}

void Sampler::keep_top_p() {
  if (options_.top_p >= 1) return;
  softmax();
  double sum = 0;
  std::size_t kept = 0;
  while (kept < candidates_.size() && sum <= options_.top_p) sum += candidates_[kept++].probability;
  candidates_.resize(kept);
}

void Sampler::keep_min_p() {
  if (options_.min_p <= 0) return;
  softmax();
  const double least = options_.min_p * candidates_.front().probability;
  std::erase_if(candidates_, [&](const Candidate& candidate) { return candidate.probability < least; });
}

void Sampler::softmax() {
  double sum = 0;
  for (Candidate& candidate : candidates_) {
    candidate.probability = std::exp(candidate.logit - candidates_.front().logit);
    sum += candidate.probability;
  }
  for (Candidate& candidate : candidates_) candidate.probability /= sum;
}

// 53 random bits over 2^53: std::uniform_real_distribution is not the same everywhere.
double Sampler::uniform() {
  return static_cast<double>(random_() >> 11) * 0x1p-53;
}

}  // namespace minimind
