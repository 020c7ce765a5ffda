#include "runtime/generate/scheduler.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <limits>

#include "runtime/engine/thread_team.h"

namespace minimind {
namespace {

// As many rows as kernels multiply in one register tile cost hardly more than one row.
constexpr std::size_t cheap_rows = 8;

}  // namespace

Scheduler::Scheduler(Forward& forward, std::size_t max_texts, double longest_step)
    : forward_(forward), max_texts_(max_texts), longest_step_(longest_step), prompt_tokens_(cheap_rows) {
  assert(max_texts > 0 && max_texts < forward.max_tokens());
}

void Scheduler::add(Generation& text) {
  assert(!full());
  texts_.push_back(&text);
}

void Scheduler::remove(Generation& text) {
  std::erase(texts_, &text);
}

std::vector<Scheduler::Ended> Scheduler::step() {
  std::vector<Ended> ended;
  for (Generation* const text : texts_) {
    if (text->ended()) ended.push_back({text, nullptr});
  }
  if (ended.empty() && !texts_.empty()) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<Share> shares = choose();
    std::vector<Piece> pieces;
    std::size_t rows = 0;
    for (Share& share : shares) {
      share.first_row = rows;
      rows += share.piece.logit_rows;
      pieces.push_back(share.piece);
    }
    const std::size_t vocab_size = forward_.model().config.vocab_size;
    logits_.resize(std::max(logits_.size(), rows * vocab_size));
    forward_.run(pieces, {logits_.data(), rows, vocab_size});
    take(shares);
    adapt(shares, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    for (const Share& share : shares) {
      if (share.error || share.text->ended()) ended.push_back({share.text, share.error});
    }
  }
  for (const Ended& text : ended) std::erase(texts_, text.generation);
  return ended;
}

// The texts that are decoded, each with as many drafts as leave the batch cheap, then prompts.
std::vector<Scheduler::Share> Scheduler::choose() {
  std::vector<Share> shares;
  const auto decoded =
      static_cast<std::size_t>(std::ranges::count_if(texts_, [](Generation* text) { return !text->in_prompt(); }));
  std::size_t room = forward_.max_tokens();
  for (Generation* const text : texts_) {
    if (text->in_prompt()) continue;
    const Piece piece = text->next(std::max<std::size_t>(1, cheap_rows / decoded));
    room -= piece.tokens.size();
    shares.push_back({.text = text, .piece = piece, .in_prompt = false, .error = nullptr});
  }
  if (decoded > 0 && longest_step_ < std::numeric_limits<double>::infinity()) room = std::min(room, prompt_tokens_);
  for (Generation* const text : texts_) {
    if (!text->in_prompt() || room == 0) continue;
    const Piece piece = text->next(room);
    room -= piece.tokens.size();
    shares.push_back({.text = text, .piece = piece, .in_prompt = true, .error = nullptr});
  }
  return shares;
}

// Sampling, grammars and text of each text on one of the threads.
void Scheduler::take(std::vector<Share>& shares) {
  const std::size_t vocab_size = forward_.model().config.vocab_size;
  std::atomic<std::size_t> next = 0;
  run_team(std::min(forward_.threads(), shares.size()), [&](Worker&) {
    for (std::size_t i = next++; i < shares.size(); i = next++) {
      Share& share = shares[i];
      const Matrix<const float> logits{&logits_[share.first_row * vocab_size], share.piece.logit_rows, vocab_size};
      try {
        share.text->take(logits);
      } catch (...) {
        share.error = std::current_exception();
      }
    }
  });
}

// The time of a step is measured, not predicted: what a token of a prompt costs depends on model, type and machine.
void Scheduler::adapt(const std::vector<Share>& shares, double seconds) {
  const auto prompts = std::ranges::count_if(shares, [](const Share& share) { return share.in_prompt; });
  if (prompts == std::ssize(shares)) return;
  if (prompts == 0 || decode_seconds_ == 0) {
    decode_seconds_ = decode_seconds_ == 0 ? seconds : 0.9 * decode_seconds_ + 0.1 * seconds;
  }
  if (prompts == 0) return;
  prompt_tokens_ = seconds > longest_step_ * decode_seconds_
                       ? std::max(prompt_tokens_ / 2, cheap_rows / 2)
                       : std::min(prompt_tokens_ + prompt_tokens_ / 4 + 1, forward_.max_tokens());
}

}  // namespace minimind
