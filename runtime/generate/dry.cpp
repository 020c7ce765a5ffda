#include "runtime/generate/dry.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "weights/base/error.h"

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

std::unique_ptr<TextPenalties> make_dry(const DryOptions& options, const Tokenizer* tokenizer, std::size_t vocab_size) {
  if (options.sequence_breakers.empty()) return std::make_unique<Dry>(options, std::vector<std::string>());
  if (!tokenizer) {
    throw UsageError(
        "the sequence breakers of DRY require a tokenizer, but the model has no tokenizer; give one, or no breakers",
        Setting::tokenizer);
  }
  std::vector<std::string> texts(vocab_size);
  for (std::size_t i = 0; i < vocab_size; ++i) texts[i] = tokenizer->token_bytes(static_cast<std::int32_t>(i));
  return std::make_unique<Dry>(options, std::move(texts));
}

Dry::Vocabulary::Vocabulary(const DryOptions& with_options, std::vector<std::string> token_texts)
    : options(with_options), texts(std::move(token_texts)), is_breaker(texts.size()) {
  for (const std::string& breaker : options.sequence_breakers) {
    longest_breaker = std::max(longest_breaker, breaker.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (texts[i].find(breaker) != std::string::npos) is_breaker[i] = true;
    }
  }
}

Dry::Dry(const DryOptions& options, std::vector<std::string> token_texts)
    : vocabulary_(std::make_shared<const Vocabulary>(options, std::move(token_texts))) {}

void Dry::accept(std::int32_t token) {
  tokens_.push_back(token);
  ++since_breaker_;
  const std::size_t longest = vocabulary_->longest_breaker;
  if (longest == 0) return;
  // A breaker that ends in this token starts in it or in the tail before it.
  const std::size_t old_size = tail_.size();
  tail_ += vocabulary_->texts[static_cast<std::size_t>(token)];
  for (const std::string& breaker : vocabulary_->options.sequence_breakers) {
    const std::size_t from = old_size >= breaker.size() ? old_size - breaker.size() + 1 : 0;
    if (tail_.find(breaker, from) != std::string::npos) since_breaker_ = 0;
  }
  if (tail_.size() >= longest) tail_.erase(0, tail_.size() - longest + 1);
}

std::span<const LogitBias> Dry::penalties() {
  penalties_.clear();
  const DryOptions& options = vocabulary_->options;
  const std::vector<bool>& is_breaker = vocabulary_->is_breaker;
  const std::size_t count = std::min(tokens_.size(), options.penalty_last_n);
  if (!options.on() || count <= options.allowed_length || since_breaker_ < options.allowed_length) return penalties_;
  const std::vector<std::int32_t> latest_first(tokens_.rbegin(), tokens_.rbegin() + static_cast<std::ptrdiff_t>(count));
  z_values(latest_first, repeated_);
  std::vector<std::pair<std::int32_t, std::size_t>> repeats;  // a token, and the length of the repetition before it
  for (std::size_t i = 1; i < count; ++i) {
    const std::size_t length = std::min(repeated_[i], since_breaker_);
    if (length >= options.allowed_length) repeats.emplace_back(latest_first[i - 1], length);
  }
  std::sort(repeats.begin(), repeats.end());
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    const auto& [token, length] = repeats[i];
    const bool longest = i + 1 == repeats.size() || repeats[i + 1].first != token;
    const bool breaks = !is_breaker.empty() && is_breaker[static_cast<std::size_t>(token)];
    if (!longest || breaks) continue;
    const double power = std::pow(options.base, static_cast<double>(length - options.allowed_length));
    penalties_.push_back({token, -std::min(options.multiplier * power, largest_penalty)});
  }
  return penalties_;
}

}  // namespace minimind
