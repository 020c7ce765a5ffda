#include "runtime/generate/sampler.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "weights/base/error.h"

namespace minimind {
namespace {

std::vector<double> biases_by_token(const std::vector<LogitBias>& biases, std::size_t vocab_size) {
  if (biases.empty()) return {};
  std::vector<double> by_token(vocab_size);
  for (const auto& [token, bias] : biases) {
    if (token < 0 || static_cast<std::size_t>(token) >= vocab_size) {
      throw UsageError(fmt::format("the logit bias names token {}, but the model's vocabulary has {} (ids 0 to {})",
                                   token, vocab_size, vocab_size - 1));
    }
    by_token[static_cast<std::size_t>(token)] = bias;
  }
  return by_token;
}

using Candidates = std::vector<Candidate>;

bool before(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

void softmax(Candidates& candidates) {
  const double largest = std::ranges::max(candidates, {}, &Candidate::logit).logit;
  double sum = 0;
  for (Candidate& candidate : candidates) {
    candidate.probability = std::exp(candidate.logit - largest);
    sum += candidate.probability;
  }
  for (Candidate& candidate : candidates) candidate.probability /= sum;
}

// The smallest set of largest probabilities whose sum exceeds p stays.
void keep_top_p(double p, Candidates& candidates) {
  double sum = 0;
  std::size_t kept = 0;
  while (kept < candidates.size() && sum <= p) sum += candidates[kept++].probability;
  candidates.resize(kept);
}

// The smallest set whose sum exceeds p stays, typical -log(probability) first (Meister et al., arXiv:2202.00666).
void keep_typical_p(double p, Candidates& candidates) {
  const auto surprise = [](const Candidate& candidate) {  // probability 0: infinite
    return -std::log(std::max(candidate.probability, std::numeric_limits<double>::min()));
  };
  double entropy = 0;
  for (const Candidate& candidate : candidates) entropy += candidate.probability * surprise(candidate);
  std::vector<std::pair<double, Candidate>> typical;  // with the distances from the entropy
  for (const Candidate& other : candidates) typical.emplace_back(std::fabs(surprise(other) - entropy), other);
  std::ranges::stable_sort(typical, {}, &std::pair<double, Candidate>::first);
  std::ranges::transform(typical, candidates.begin(), &std::pair<double, Candidate>::second);
  keep_top_p(p, candidates);
  std::sort(candidates.begin(), candidates.end(), before);
}

// Probabilities below p times the top-1 probability are dropped.
void keep_min_p(double p, Candidates& candidates) {
  const double least = p * candidates.front().probability;
  std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.probability < least; });
}

// A step that drops tokens. `keep` gets them with probabilities whose sum is 1, the largest logit first, leaves at
// least one of them, and leaves them in this order.
struct Step {
  double SamplingOptions::*parameter;
  double off;  // the value that changes nothing
  void (*keep)(double parameter, Candidates& candidates);

  bool is_on(const SamplingOptions& options) const { return options.*parameter != off; }
};
constexpr Step steps[] = {
    // Those after top-k, in their order.
    {&SamplingOptions::typical_p, 1, keep_typical_p},
    {&SamplingOptions::top_p, 1, keep_top_p},
    {&SamplingOptions::min_p, 0, keep_min_p},
};

}  // namespace

void check_finite(std::span<const float> logits) {
  // 0 * x is NaN for NaN and infinity, which sums keep. Several sums, so that they are computed side by side.
  std::array<float, 16> sums{};
  std::size_t i = 0;
  for (; i + sums.size() <= logits.size(); i += sums.size()) {
    for (std::size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += 0 * logits[i + lane];
  }
  for (; i < logits.size(); ++i) sums[0] += 0 * logits[i];
  if (!std::all_of(sums.begin(), sums.end(), [](float sum) { return sum == 0; })) {
    throw Error(
        "the logits have NaN or infinity, expected finite values: the checkpoint's weights are corrupt or have "
        "overflowed");
  }
}

// A chunk of values has rows of as many as are compared side by side.
static constexpr std::size_t lanes = 16, chunk_rows = 16, chunk_size = lanes * chunk_rows;

// Sets `maxima_` to the largest value of each column of each chunk. Values after the last whole chunk are in none.
void LargeValues::find_column_maxima(std::span<const float> values) {
  maxima_.clear();
  for (std::size_t i = 0; i + chunk_size <= values.size(); i += chunk_size) {
    std::array<float, lanes> largest;
    std::copy_n(&values[i], lanes, largest.begin());
    for (std::size_t row = 1; row < chunk_rows; ++row) {
      const float* const of_row = &values[i + row * lanes];
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        largest[lane] = of_row[lane] > largest[lane] ? of_row[lane] : largest[lane];
      }
    }
    maxima_.insert(maxima_.end(), largest.begin(), largest.end());
  }
}

// All that reach the k-th largest of the columns' maxima, which is no larger than the k-th largest value, and which few
// columns reach.
std::span<const std::size_t> LargeValues::find(std::span<const float> values, std::size_t k) {
  find_column_maxima(values);
  float least = -std::numeric_limits<float>::infinity();
  if (maxima_.size() >= k) {
    ordered_ = maxima_;
    const auto last = ordered_.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(ordered_.begin(), last, ordered_.end(), std::greater<>());
    least = *last;
  }
  found_.clear();
  const auto keep_if_large = [&](std::size_t i) {
    if (values[i] >= least) found_.push_back(i);
  };
  for (std::size_t column = 0; column < maxima_.size(); ++column) {
    if (maxima_[column] < least) continue;
    const std::size_t first = column / lanes * chunk_size + column % lanes;
    for (std::size_t row = 0; row < chunk_rows; ++row) keep_if_large(first + row * lanes);
  }
  for (std::size_t i = values.size() / chunk_size * chunk_size; i < values.size(); ++i) keep_if_large(i);
  return found_;
}

Sampler::Sampler(const SamplingOptions& options, std::size_t vocab_size)
    : options_(options),
      seen_(vocab_size),
      generated_(vocab_size),
      bias_(biases_by_token(options.logit_bias, vocab_size)),
      random_(options.seed) {}

void Sampler::accept(std::int32_t token, bool is_generated) {
  ++seen_[static_cast<std::size_t>(token)];
  generated_[static_cast<std::size_t>(token)] += is_generated ? 1 : 0;
  if (options_.repeat_last_n == largest_whole) return;
  last_.emplace_back(token, is_generated);
  if (last_.size() <= options_.repeat_last_n) return;
  const auto [oldest, was_generated] = last_.front();
  last_.pop_front();
  --seen_[static_cast<std::size_t>(oldest)];
  generated_[static_cast<std::size_t>(oldest)] -= was_generated ? 1 : 0;
}

std::int32_t Sampler::sample(std::span<const float> logits, std::span<const std::uint8_t> allowed,
                             std::span<const LogitBias> penalties) {
  check_finite(logits);
  allowed_ = allowed;
  penalties_.assign(penalties.empty() ? 0 : logits.size(), 0);
  for (const auto& [token, bias] : penalties) penalties_[static_cast<std::size_t>(token)] = bias;
  if (options_.temperature == 0) {
    gather(logits, 1);
    return candidates_.front().token;
  }
  gather(logits, options_.top_k);
  for (const Step& step : steps) {
    if (!step.is_on(options_)) continue;
    softmax(candidates_);
    step.keep(options_.*step.parameter, candidates_);
  }
  softmax(candidates_);
  double left = uniform();
  for (const Candidate& candidate : candidates_) {
    left -= candidate.probability;
    if (left < 0) return candidate.token;
  }
  return candidates_.back().token;
}

// Minus infinity for an excluded token.
double Sampler::score(std::size_t token, float logit) const {
  if (!allowed_.empty() && allowed_[token] == 0) return -std::numeric_limits<double>::infinity();
  double score = logit;
  if (!bias_.empty()) score += bias_[token];
  if (options_.temperature != 0) score /= options_.temperature;
  if (seen_[token] > 0) score = score > 0 ? score / options_.repeat_penalty : score * options_.repeat_penalty;
  if (generated_[token] > 0) score -= options_.presence_penalty + generated_[token] * options_.frequency_penalty;
  if (!penalties_.empty()) score += penalties_[token];
  return score;
}

// Whether the scores are the logits, divided by the temperature.
bool Sampler::is_plain() const {
  return allowed_.empty() && bias_.empty() && penalties_.empty() && options_.repeat_penalty == 1 &&
         options_.presence_penalty == 0 && options_.frequency_penalty == 0;
}

// Whether steps after top-k need the largest first. To sort a whole vocabulary takes longer than everything else.
bool Sampler::ranks() const {
  return std::ranges::any_of(steps, [&](const Step& step) { return step.is_on(options_); });
}

// Sets candidates_ to the tokens of the k largest scores, and to all that equal the last of these; to all if k is 0.
void Sampler::gather(std::span<const float> logits, std::size_t k) {
  candidates_.clear();
  const auto add = [&](std::size_t token) {
    const double its = score(token, logits[token]);
    if (std::isfinite(its)) candidates_.push_back({static_cast<std::int32_t>(token), its, 0});
  };
  const bool some = k != 0 && k < logits.size();
  if (!some) {
    for (std::size_t token = 0; token < logits.size(); ++token) add(token);
  } else {
    // Rounding to float, and dividing by the temperature, never put two scores into the opposite order.
    if (!is_plain()) {
      scores_.resize(logits.size());
      for (std::size_t i = 0; i < logits.size(); ++i) scores_[i] = static_cast<float>(score(i, logits[i]));
    }
    std::ranges::for_each(large_values_.find(is_plain() ? logits : scores_, k), add);
  }
  if (candidates_.empty()) {
    throw Error("no token is left to sample: the logit bias or the grammar excludes all of them");
  }
  if (some && candidates_.size() > k) {
    const auto last = candidates_.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(candidates_.begin(), last, candidates_.end(), before);
    std::erase_if(candidates_, [least = last->logit](const Candidate& candidate) { return candidate.logit < least; });
  }
  if (some || ranks()) std::sort(candidates_.begin(), candidates_.end(), before);
}

// 53 random bits over 2^53: std::uniform_real_distribution is not the same everywhere.
double Sampler::uniform() {
  return static_cast<double>(random_() >> 11) * 0x1p-53;
}

}  // namespace minimind
