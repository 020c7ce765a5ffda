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

// Values are compared side by side, in chunks of rows of as many.
constexpr std::size_t lanes = 16, chunk_rows = 16, chunk_size = lanes * chunk_rows;

// Returns the largest value of each column of each chunk. Values after the last whole chunk are in none.
template <class Value>
void find_column_maxima(std::span<const Value> values, std::vector<Value>& maxima) {
  maxima.clear();
  for (std::size_t i = 0; i + chunk_size <= values.size(); i += chunk_size) {
    std::array<Value, lanes> largest;
    std::copy_n(&values[i], lanes, largest.begin());
    for (std::size_t row = 1; row < chunk_rows; ++row) {
      const Value* const of_row = &values[i + row * lanes];
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        largest[lane] = of_row[lane] > largest[lane] ? of_row[lane] : largest[lane];
      }
    }
    maxima.insert(maxima.end(), largest.begin(), largest.end());
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
  // Dividing floats as doubles keeps their order, so that it can wait until few tokens are left.
  const bool plain = is_plain();
  const auto plain_score = [&](std::size_t token) { return logits[token] / options_.temperature; };
  for (std::size_t i = 0; !plain && i < logits.size(); ++i) scores_[i] = score(i, logits[i]);
  if (options_.top_k == 0 || options_.top_k >= logits.size()) {
    for (std::size_t i = 0; i < logits.size(); ++i) add(i, plain ? plain_score(i) : scores_[i]);
    if (ranks()) std::sort(candidates_.begin(), candidates_.end(), before);
  } else {
    if (plain) {
      for_each_large(logits, large_logits_, [&](std::size_t token) { add(token, plain_score(token)); });
    } else {
      const std::span<const double> scores(scores_);
      for_each_large(scores, large_scores_, [&](std::size_t token) { add(token, scores[token]); });
    }
    keep_top_k();
  }
  if (candidates_.empty()) fail_none_left();
}

// Calls `use` with the indices of the top_k largest values, of all that equal the last of these, and of few others: all
// that reach the top_k-th largest of the columns' maxima, which is no larger, and which few columns reach.
template <class Value, class Use>
void Sampler::for_each_large(std::span<const Value> values, LargeValues<Value>& scratch, Use use) const {
  std::vector<Value>& maxima = scratch.maxima;
  find_column_maxima(values, maxima);
  Value least = -std::numeric_limits<Value>::infinity();
  if (maxima.size() >= options_.top_k) {
    scratch.ordered = maxima;
    const auto last = scratch.ordered.begin() + static_cast<std::ptrdiff_t>(options_.top_k - 1);
    std::nth_element(scratch.ordered.begin(), last, scratch.ordered.end(), std::greater<>());
    least = *last;
  }
  const auto use_if_large = [&](std::size_t i) {
    if (values[i] >= least) use(i);
  };
  for (std::size_t column = 0; column < maxima.size(); ++column) {
    if (maxima[column] < least) continue;
    const std::size_t first = column / lanes * chunk_size + column % lanes;
    for (std::size_t row = 0; row < chunk_rows; ++row) use_if_large(first + row * lanes);
  }
  for (std::size_t i = values.size() / chunk_size * chunk_size; i < values.size(); ++i) use_if_large(i);
}

void Sampler::keep_top_k() {
  if (candidates_.size() > options_.top_k) {
    const auto last = candidates_.begin() + static_cast<std::ptrdiff_t>(options_.top_k - 1);
    std::nth_element(candidates_.begin(), last, candidates_.end(), before);
    std::erase_if(candidates_, [least = last->logit](const Candidate& candidate) { return candidate.logit < least; });
  }
  std::sort(candidates_.begin(), candidates_.end(), before);
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
