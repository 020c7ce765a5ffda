#include "runtime/generate/sampler.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "weights/io/error.h"

namespace minimind {

namespace {

void require(bool fits, const char* option, double value, const char* wanted) {
  if (!fits) throw UsageError(fmt::format("{} is {}, expected {}", option, value, wanted));
}

void check(const DryOptions& dry) {
  require(dry.multiplier >= 0 && dry.multiplier <= 1e6, "dry-multiplier", dry.multiplier, "0 to 1e6");
  require(dry.base >= 1 && dry.base <= 1e6, "dry-base", dry.base, "1 to 1e6");
  const auto& breakers = dry.sequence_breakers;
  if (std::find(breakers.begin(), breakers.end(), "") != breakers.end()) {
    throw UsageError("dry-sequence-breaker is empty, expected a string");
  }
}

void check(std::vector<LogitBias> biases) {
  for (const LogitBias& bias : biases) {
    const bool bans = bias.bias == -std::numeric_limits<double>::infinity();
    require(bans || std::fabs(bias.bias) <= 1e6, "logit-bias", bias.bias, "-1e6 to 1e6, or -inf");
  }
  const auto before = [](const LogitBias& a, const LogitBias& b) { return a.token < b.token; };
  const auto same = [](const LogitBias& a, const LogitBias& b) { return a.token == b.token; };
  std::sort(biases.begin(), biases.end(), before);
  const auto twice = std::adjacent_find(biases.begin(), biases.end(), same);
  if (twice != biases.end()) throw UsageError(fmt::format("logit-bias of token {} is repeated", twice->token));
}

[[noreturn]] void fail_none_left() {
  throw Error("no token is left to sample: the logit bias or the grammar excludes all of them");
}

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

constexpr std::size_t lanes = 16;  // of a block of values, which are compared side by side

template <class Value>
Value largest_of_block(const Value* block) {
  std::array<Value, lanes / 2> largest;
  for (std::size_t lane = 0; lane < lanes / 2; ++lane) largest[lane] = std::max(block[lane], block[lane + lanes / 2]);
  return std::ranges::max(largest);
}

// Calls `use` with the index of every value that is at least `least`. Few are, so that most are compared in blocks.
template <class Value, class Use>
void for_each_at_least(std::span<const Value> values, Value least, Use use) {
  std::size_t i = 0;
  for (; i + lanes <= values.size(); i += lanes) {
    std::uint32_t found = 0;
    for (std::size_t lane = 0; lane < lanes; ++lane) found |= values[i + lane] >= least ? 1u : 0u;
    if (found == 0) continue;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      if (values[i + lane] >= least) use(i + lane);
    }
  }
  for (; i < values.size(); ++i) {
    if (values[i] >= least) use(i);
  }
}

// The index of the first of the largest values.
std::int32_t first_largest(std::span<const float> values) {
  std::array<float, lanes> largest;
  largest.fill(-std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + lanes <= values.size(); i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      largest[lane] = values[i + lane] > largest[lane] ? values[i + lane] : largest[lane];
    }
  }
  for (; i < values.size(); ++i) largest[0] = std::max(largest[0], values[i]);
  return static_cast<std::int32_t>(std::ranges::find(values, std::ranges::max(largest)) - values.begin());
}

}  // namespace

void check(const SamplingOptions& options) {
  // With these limits no finite logit can overflow a double.
  const auto factor = [](double value) { return value >= 1e-6 && value <= 1e6; };
  const auto term = [](double value) { return std::fabs(value) <= 1e6; };
  require(options.temperature == 0 || factor(options.temperature), "temperature", options.temperature,
          "0, or 1e-6 to 1e6");
  require(options.typical_p > 0 && options.typical_p <= 1, "typical-p", options.typical_p, "more than 0 and at most 1");
  require(options.top_p > 0 && options.top_p <= 1, "top-p", options.top_p, "more than 0 and at most 1");
  require(options.min_p >= 0 && options.min_p <= 1, "min-p", options.min_p, "0 to 1");
  require(factor(options.repeat_penalty), "repeat-penalty", options.repeat_penalty, "1e-6 to 1e6");
  require(term(options.presence_penalty), "presence-penalty", options.presence_penalty, "-1e6 to 1e6");
  require(term(options.frequency_penalty), "frequency-penalty", options.frequency_penalty, "-1e6 to 1e6");
  check(options.dry);
  check(options.logit_bias);
}

void check_finite(std::span<const float> logits) {
  // 0 * x is NaN for NaN and infinity, which sums keep. Several sums, so that they are computed side by side.
  std::array<float, lanes> sums{};
  std::size_t i = 0;
  for (; i + lanes <= logits.size(); i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += 0 * logits[i + lane];
  }
  for (; i < logits.size(); ++i) sums[0] += 0 * logits[i];
  if (!std::all_of(sums.begin(), sums.end(), [](float sum) { return sum == 0; })) {
    throw Error(
        "the logits have NaN or infinity, expected finite values: the checkpoint's weights are corrupt or have "
        "overflowed");
  }
}

Sampler::Sampler(const SamplingOptions& options, std::size_t vocab_size)
    : options_(options),
      seen_(vocab_size),
      generated_(vocab_size),
      bias_(biases_by_token(options.logit_bias, vocab_size)),
      random_(options.seed) {
  if (options.temperature != 0) {
    candidates_.reserve(vocab_size);
    scores_.resize(vocab_size);
    large_scores_.reserve(vocab_size);
    large_logits_.reserve(vocab_size);
  }
}

void Sampler::accept_prompt(std::int32_t token) {
  seen_[static_cast<std::size_t>(token)] = true;
}

void Sampler::accept(std::int32_t token) {
  accept_prompt(token);
  ++generated_[static_cast<std::size_t>(token)];
}

std::int32_t Sampler::sample(std::span<const float> logits, std::span<const std::uint8_t> allowed,
                             std::span<const LogitBias> penalties) {
  check_finite(logits);
  allowed_ = allowed;
  penalties_.assign(penalties.empty() ? 0 : logits.size(), 0);
  for (const auto& [token, bias] : penalties) penalties_[static_cast<std::size_t>(token)] = bias;
  if (options_.temperature == 0) return largest(logits);
  gather(logits);
  keep_typical_p();
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

// Minus infinity for an excluded token.
double Sampler::score(std::size_t token, float logit) const {
  if (!allowed_.empty() && allowed_[token] == 0) return -std::numeric_limits<double>::infinity();
  double score = logit;
  if (!bias_.empty()) score += bias_[token];
  if (options_.temperature != 0) score /= options_.temperature;
  if (seen_[token]) score = score > 0 ? score / options_.repeat_penalty : score * options_.repeat_penalty;
  if (generated_[token] > 0) score -= options_.presence_penalty + generated_[token] * options_.frequency_penalty;
  if (!penalties_.empty()) score += penalties_[token];
  return score;
}

// Whether the scores are the logits, divided by the temperature.
bool Sampler::is_plain() const {
  return allowed_.empty() && bias_.empty() && penalties_.empty() && options_.repeat_penalty == 1 &&
         options_.presence_penalty == 0 && options_.frequency_penalty == 0;
}

std::int32_t Sampler::largest(std::span<const float> logits) const {
  if (is_plain()) return first_largest(logits);
  double largest = -std::numeric_limits<double>::infinity();
  std::int32_t token = -1;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double its = score(i, logits[i]);
    if (its <= largest) continue;
    largest = its;
    token = static_cast<std::int32_t>(i);
  }
  if (token < 0) fail_none_left();
  return token;
}

bool Sampler::before(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

// Whether steps after top-k need the largest first. To sort a whole vocabulary takes longer than everything else.
bool Sampler::ranks() const {
  return options_.typical_p < 1 || options_.top_p < 1 || options_.min_p > 0;
}

// The tokens that top-k keeps, which are few: gathering all of them takes longer than everything else.
void Sampler::gather(std::span<const float> logits) {
  candidates_.clear();
  const auto add = [&](std::size_t token, double score) {
    if (std::isfinite(score)) candidates_.push_back({static_cast<std::int32_t>(token), score, 0});
  };
  const bool limited = options_.top_k > 0 && options_.top_k < logits.size();
  if (is_plain()) {
    // Dividing floats as doubles keeps their order, so that it can wait until few tokens are left.
    const float least = limited ? kth_largest(logits, large_logits_) : -std::numeric_limits<float>::infinity();
    for_each_at_least(logits, least, [&](std::size_t token) { add(token, logits[token] / options_.temperature); });
  } else {
    for (std::size_t i = 0; i < logits.size(); ++i) scores_[i] = score(i, logits[i]);
    const std::span<const double> scores(scores_);
    const double least = limited ? kth_largest(scores, large_scores_) : -std::numeric_limits<double>::infinity();
    for_each_at_least(scores, least, [&](std::size_t token) { add(token, scores[token]); });
  }
  if (candidates_.empty()) fail_none_left();
  if (limited || ranks()) std::sort(candidates_.begin(), candidates_.end(), before);
}

// Returns the k-th largest value. The k-th largest of the blocks' largest values is no larger, and few values are that
// large.
template <class Value>
Value Sampler::kth_largest(std::span<const Value> values, std::vector<Value>& large) {
  const auto kth_of_large = [&] {
    const auto kth = large.begin() + static_cast<std::ptrdiff_t>(options_.top_k - 1);
    std::nth_element(large.begin(), kth, large.end(), std::greater<>());
    return *kth;
  };
  large.clear();
  for (std::size_t i = 0; i + lanes <= values.size(); i += lanes) large.push_back(largest_of_block(&values[i]));
  const Value least = large.size() < options_.top_k ? -std::numeric_limits<Value>::infinity() : kth_of_large();
  large.clear();
  for_each_at_least(values, least, [&](std::size_t i) { large.push_back(values[i]); });
  return kth_of_large();
}

void Sampler::keep_typical_p() {
  if (options_.typical_p >= 1) return;
  softmax();
  const auto surprise = [](const Candidate& candidate) {  // probability 0: infinite
    return -std::log(std::max(candidate.probability, std::numeric_limits<double>::min()));
  };
  double entropy = 0;
  for (const Candidate& candidate : candidates_) entropy += candidate.probability * surprise(candidate);
  const auto distance = [&](const Candidate& candidate) { return std::fabs(surprise(candidate) - entropy); };
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [&](const Candidate& a, const Candidate& b) { return distance(a) < distance(b); });
  keep_until_sum_exceeds(options_.typical_p);
  std::sort(candidates_.begin(), candidates_.end(), before);
}

void Sampler::keep_until_sum_exceeds(double p) {
  double sum = 0;
  std::size_t kept = 0;
  while (kept < candidates_.size() && sum <= p) sum += candidates_[kept++].probability;
  candidates_.resize(kept);
}

void Sampler::keep_top_p() {
  if (options_.top_p >= 1) return;
  softmax();
  keep_until_sum_exceeds(options_.top_p);
}

void Sampler::keep_min_p() {
  if (options_.min_p <= 0) return;
  softmax();
  const double least = options_.min_p * candidates_.front().probability;
  std::erase_if(candidates_, [&](const Candidate& candidate) { return candidate.probability < least; });
}

void Sampler::softmax() {
  const double largest = std::ranges::max(candidates_, {}, &Candidate::logit).logit;
  double sum = 0;
  for (Candidate& candidate : candidates_) {
    candidate.probability = std::exp(candidate.logit - largest);
    sum += candidate.probability;
  }
  for (Candidate& candidate : candidates_) candidate.probability /= sum;
}

// 53 random bits over 2^53: std::uniform_real_distribution is not the same everywhere.
double Sampler::uniform() {
  return static_cast<double>(random_() >> 11) * 0x1p-53;
}

}  // namespace minimind
