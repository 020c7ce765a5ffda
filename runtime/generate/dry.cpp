#include "runtime/generate/dry.h"

#include <algorithm>
#include <cmath>
#include <memory>
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

std::span<const LogitBias> Dry::penalties() {
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
    penalties_.push_back({token, -std::min(options_.multiplier * power, largest_penalty)});
  }
  return penalties_;
}

}  // namespace minimind
