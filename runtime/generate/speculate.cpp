#include "runtime/generate/speculate.h"

#include <algorithm>
#include <utility>

#include "runtime/engine/prefill.h"
#include "weights/base/cancel.h"

namespace minimind {

DraftModel::DraftModel(Forward forward, Context context)
    : forward_(std::move(forward)), context_(std::move(context)), logits_(forward_.model().config.vocab_size) {}

std::span<const std::int32_t> DraftModel::draft(std::span<const std::int32_t> tokens, std::size_t most,
                                                const std::atomic<bool>& interrupted) {
  drafts_.clear();
  if (most == 0 || tokens.size() > context_.capacity()) return drafts_;
  // The last drafted token is not run.
  most = std::min(most, context_.capacity() - tokens.size() + 1);
  context_.rewind(context_.common_prefix(tokens));
  const Cancellation cancellation(interrupted);
  try {
    prefill(forward_, context_, tokens.subspan(context_.size()), logits_);
    while (true) {
      const auto likeliest = std::max_element(logits_.begin(), logits_.end());
      drafts_.push_back(static_cast<std::int32_t>(likeliest - logits_.begin()));
      if (drafts_.size() == most) break;
      forward_.run(context_, {&drafts_.back(), 1}, {logits_.data(), 1, logits_.size()});
    }
  } catch (const Cancelled&) {
    drafts_.clear();
  }
  return drafts_;
}

namespace {

// A match of two tokens is too weak: in new prose, poems and code, drafts from it fail too often.
constexpr std::size_t shortest_agreement = 3;
// A larger limit finds longer matches in repetitive texts, but takes longer.
constexpr std::size_t most_compared = 64;  // occurrences
constexpr std::size_t far_enough = 64;     // matching tokens after which the search stops

}  // namespace

std::span<const std::int32_t> PromptLookup::draft(std::span<const std::int32_t> tokens, std::size_t most,
                                                  const std::atomic<bool>&) {
  index(tokens);
  drafts_.clear();
  const Occurrence best = best_occurrence();
  for (std::size_t i = 0; i < std::min(most, best.tokens); ++i) {
    const std::size_t at = best.end + i;
    drafts_.push_back(at < tokens.size() ? tokens[at] : drafts_[at - tokens.size()]);
  }
  return drafts_;
}

void PromptLookup::index(std::span<const std::int32_t> tokens) {
  const std::size_t common = common_prefix(tokens_, tokens);
  while (tokens_.size() > common) pop();
  for (const std::int32_t token : tokens.subspan(common)) push(token);
}

void PromptLookup::push(std::int32_t token) {
  tokens_.push_back(token);
  before_.push_back(0);
  if (tokens_.size() < shortest_agreement) return;
  std::size_t& latest = latest_[key_of_end()];
  before_.back() = latest;
  latest = tokens_.size();
}

void PromptLookup::pop() {
  if (tokens_.size() >= shortest_agreement) latest_[key_of_end()] = before_.back();
  tokens_.pop_back();
  before_.pop_back();
}

// A hash of the last tokens. Hashes may collide, so agreement() compares the tokens.
std::uint64_t PromptLookup::key_of_end() const {
  std::uint64_t key = 0;
  for (auto token = tokens_.end() - static_cast<std::ptrdiff_t>(shortest_agreement); token != tokens_.end(); ++token) {
    key = (key ^ static_cast<std::uint32_t>(*token)) * 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio: Knuth, 6.4
    key ^= key >> 32;
  }
  return key;
}

// Returns the number of tokens before `end` that equal those before the end of the text.
std::size_t PromptLookup::agreement(std::size_t end) const {
  std::size_t count = 0;
  while (count < std::min(end, far_enough) && tokens_[end - 1 - count] == tokens_[tokens_.size() - 1 - count]) ++count;
  return count;
}

PromptLookup::Occurrence PromptLookup::best_occurrence() const {
  Occurrence best;
  std::size_t end = before_.empty() ? 0 : before_.back();
  for (std::size_t i = 0; i < most_compared && end > 0 && best.tokens < far_enough; ++i, end = before_[end - 1]) {
    const std::size_t tokens = agreement(end);
    if (tokens >= shortest_agreement && tokens > best.tokens) best = {end, tokens};
  }
  return best;
}

}  // namespace minimind
