#include "runtime/generate/sampler.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "weights/io/error.h"

namespace minimind {
namespace {

// Greater than any logit, and finite.
constexpr double largest_penalty = 1e300;

// Returns z, where z[i], for i > 0, is the length of the common prefix of the items from i on and the items from 0 on.
// Linear time (Gusfield, Algorithms on Strings, Trees and Sequences, 1.4).
void z_values(std::span<const std::int32_t> items, std::vector<std::size_t>& z) {
  z.assign(items.size(), 0);
  std::size_t begin = 0, end = 0;  // of the match that reaches furthest
  for (std::size_t i = 1; i < items.size(); ++i) {
    std::size_t length = i < end ? std::min(z[i - begin], end - i) : 0;
    while (i + length < items.size() && items[length] == items[i + length]) ++length;
    z[i] = length;
    if (i + length > end) std::tie(begin, end) = std::pair(i, i + length);
  }
}

}  // namespace

Dry::Dry(const DryOptions& options, std::vector<std::string> token_texts)
    : options_(options), token_texts_(std::move(token_texts)), is_breaker_(token_texts_.size()) {
  for (const std::string& breaker : options_.sequence_breakers) {
    longest_breaker_ = std::max(longest_breaker_, breaker.size());
    for (std::size_t i = 0; i < token_texts_.size(); ++i) {
      if (token_texts_[i].find(breaker) != std::string::npos) is_breaker_[i] = true;
    }
  }
}

void Dry::accept(std::int32_t token) {
  tokens_.push_back(token);
  ++since_breaker_;
  if (longest_breaker_ == 0) return;
  // A breaker that ends in this token starts in it or in the tail before it.
  const std::size_t old_size = tail_.size();
  tail_ += token_texts_[static_cast<std::size_t>(token)];
  for (const std::string& breaker : options_.sequence_breakers) {
    const std::size_t from = old_size >= breaker.size() ? old_size - breaker.size() + 1 : 0;
    if (tail_.find(breaker, from) != std::string::npos) since_breaker_ = 0;
  }
  if (tail_.size() >= longest_breaker_) tail_.erase(0, tail_.size() - longest_breaker_ + 1);
}

std::span<const Dry::Penalty> Dry::penalties() {
  penalties_.clear();
  const std::size_t count = std::min(tokens_.size(), options_.penalty_last_n);
  if (!options_.on() || count <= options_.allowed_length || since_breaker_ < options_.allowed_length) return penalties_;
  const std::vector<std::int32_t> latest_first(tokens_.rbegin(), tokens_.rbegin() + static_cast<std::ptrdiff_t>(count));
  z_values(latest_first, repeated_);
  std::vector<std::pair<std::int32_t, std::size_t>> repeats;  // a token, and the length of the repetition before it
  for (std::size_t i = 1; i < count; ++i) {
    const std::size_t length = std::min(repeated_[i], since_breaker_);
    if (length >= options_.allowed_length) repeats.emplace_back(latest_first[i - 1], length);
  }
  std::sort(repeats.begin(), repeats.end());
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    const auto& [token, length] = repeats[i];
    const bool longest = i + 1 == repeats.size() || repeats[i + 1].first != token;
    const bool breaks = !is_breaker_.empty() && is_breaker_[static_cast<std::size_t>(token)];
    if (!longest || breaks) continue;
    const double power = std::pow(options_.base, static_cast<double>(length - options_.allowed_length));
    penalties_.push_back({token, std::min(options_.multiplier * power, largest_penalty)});
  }
  return penalties_;
}

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

std::optional<Dry> make_dry(const DryOptions& options, std::size_t vocab_size, const TokenText& token_text) {
  if (!options.on()) return std::nullopt;
  if (options.sequence_breakers.empty()) return Dry(options, {});
  if (!token_text) {
    throw UsageError(
        "the sequence breakers of DRY require a tokenizer, but the model has no tokenizer; give one, or no breakers",
        Setting::tokenizer);
  }
  std::vector<std::string> texts(vocab_size);
  for (std::size_t i = 0; i < vocab_size; ++i) texts[i] = token_text(static_cast<std::int32_t>(i));
  return Dry(options, std::move(texts));
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

Sampler::Sampler(const SamplingOptions& options, std::size_t vocab_size, const TokenText& token_text)
    : options_(options),
      seen_(vocab_size),
      generated_(vocab_size),
      bias_(biases_by_token(options.logit_bias, vocab_size)),
      dry_(make_dry(options.dry, vocab_size, token_text)),
      random_(options.seed) {
  if (dry_) dry_penalties_.resize(vocab_size);
  if (options.temperature != 0) candidates_.reserve(vocab_size);
}

void Sampler::accept_prompt(std::int32_t token) {
  seen_[static_cast<std::size_t>(token)] = true;
  if (dry_) dry_->accept(token);
}

void Sampler::accept(std::int32_t token) {
  accept_prompt(token);
  ++generated_[static_cast<std::size_t>(token)];
}

std::int32_t Sampler::sample(std::span<const float> logits, std::span<const std::uint8_t> allowed) {
  if (!std::all_of(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); })) {
    throw Error(
        "the logits have NaN or infinity, expected finite values: the checkpoint's weights are corrupt or have "
        "overflowed");
  }
  allowed_ = allowed;
  if (dry_) {
    std::fill(dry_penalties_.begin(), dry_penalties_.end(), 0);
    for (const auto& [token, amount] : dry_->penalties()) dry_penalties_[static_cast<std::size_t>(token)] = amount;
  }
  if (options_.temperature == 0) return largest(logits);
  gather(logits);
  keep_top_k();
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
  if (dry_) score -= dry_penalties_[token];
  return score;
}

std::int32_t Sampler::largest(std::span<const float> logits) const {
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

void Sampler::gather(std::span<const float> logits) {
  candidates_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double its = score(i, logits[i]);
    if (std::isfinite(its)) candidates_.push_back({static_cast<std::int32_t>(i), its, 0});
  }
  if (candidates_.empty()) fail_none_left();
}

bool Sampler::before(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

void Sampler::keep_top_k() {
  if (options_.top_k > 0 && options_.top_k < candidates_.size()) {
    const auto kth = candidates_.begin() + static_cast<std::ptrdiff_t>(options_.top_k) - 1;
    std::nth_element(candidates_.begin(), kth, candidates_.end(), before);
    const double smallest = kth->logit;
    std::erase_if(candidates_, [&](const Candidate& candidate) { return candidate.logit < smallest; });
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
